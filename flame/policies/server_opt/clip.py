"""An upper bound on the length of G, before any other step (Pascanu et al., ICML'13).

    G <- G min(1, norm / ||G||)

One norm over all trainables. At or below the bound the bits of G are untouched.
"""

from typing import Annotated, Any, Literal

from pydantic import Field, PositiveFloat

from flame.learn.params import Vector, norm
from flame.policies.policy import Policy
from flame.policies.server_opt.adagrad import Adagrad
from flame.policies.server_opt.adam import Adam
from flame.policies.server_opt.momentum import Momentum
from flame.policies.server_opt.nesterov import Nesterov
from flame.policies.server_opt.sgd import Sgd
from flame.policies.server_opt.step import wide
from flame.policies.server_opt.trust_ratio import TrustRatio
from flame.policies.server_opt.view import StepView
from flame.policies.server_opt.yogi import Yogi

Plain = Annotated[Adagrad | Adam | Momentum | Nesterov | Sgd | TrustRatio | Yogi, Field(discriminator="type")]


class Clip(Policy):
    """norm: the greatest ||G||. before: the step that gets what is left of it; the state is its."""

    type: Literal["clip"] = "clip"
    norm: PositiveFloat
    before: Plain

    @property
    def gain(self) -> str:
        """That of the step behind it."""
        return f"{self.before.gain}; ||G|| at most {self.norm:.3g}"

    def step(self, theta: Vector, aggregate: Vector, view: StepView, state: Any) -> tuple[Vector, Any]:
        """The inner step along the clipped G."""
        length = norm(aggregate)
        if length > self.norm:
            aggregate = (wide(aggregate) * (self.norm / length)).astype(aggregate.dtype)
        return self.before.step(theta, aggregate, view, state)
