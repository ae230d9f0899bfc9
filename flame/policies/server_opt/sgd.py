"""Plain descent, constant or decaying per round as FwdLLM's server does."""

from typing import Literal

from pydantic import PositiveFloat, PositiveInt

from flame.learn.params import Vector
from flame.policies.heard import heard
from flame.policies.policy import Policy
from flame.policies.server_opt.view import StepView


class Sgd(Policy):
    """theta <- theta - lr G. decay `round`: lr (R - r) / R in round r of R."""

    HEARD = heard("decay", ["round"], "rounds")
    type: Literal["sgd"] = "sgd"
    lr: PositiveFloat
    decay: Literal["none", "round"] = "none"
    rounds: PositiveInt = 3000

    @property
    def gain(self) -> str:
        """lr, at the start."""
        return f"{self.lr:.3g}" + (f", down to 0 over {self.rounds} rounds" if self.decay == "round" else "")

    def step(self, theta: Vector, aggregate: Vector, view: StepView, state: None) -> tuple[Vector, None]:
        """The next theta (p,), a new array of theta's dtype, and the optimizer's next state."""
        left = max(self.rounds - view.progress.round, 0) / self.rounds if self.decay == "round" else 1.0
        return theta - theta.dtype.type(self.lr * left) * aggregate, state
