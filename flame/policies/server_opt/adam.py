"""Adam at the server (FedAdam: Reddi et al., ICLR'21), by torch.optim.Adam's rule, which corrects the bias of the start.

    m <- b1 m + (1 - b1) G,   v <- b2 v + (1 - b2) G^2
    theta <- theta - lr m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + tau),   t = 1, 2, ...

The paper has no correction and starts v at tau^2; betas and tau are the paper's (tau is torch's eps).
"""

from typing import Annotated, Literal, NamedTuple

import numpy as np
from pydantic import Field, PositiveFloat

from flame.learn.params import Vector
from flame.policies.policy import Policy
from flame.policies.server_opt.step import Wide, descended, wide
from flame.policies.server_opt.view import StepView

Beta = Annotated[float, Field(ge=0, lt=1)]


class AdamState(NamedTuple):
    """steps: t. first, second: m and v, (p,)."""

    steps: int
    first: Wide
    second: Wide


class Adam(Policy):
    """Descent by lr per coordinate, in units of the coordinate's own recent size."""

    type: Literal["adam"] = "adam"
    lr: PositiveFloat
    beta_1: Beta = 0.9
    beta_2: Beta = 0.99
    tau: PositiveFloat = 1e-3

    @property
    def gain(self) -> str:
        """It has none: the length of G cancels."""
        return f"about {self.lr:.3g} per coordinate, whatever G's length (over {self.tau:.3g})"

    def step(self, theta: Vector, aggregate: Vector, view: StepView, state: AdamState | None) -> tuple[Vector, AdamState]:
        """The next theta, and (t, m, v)."""
        g = wide(aggregate)
        steps, m, v = state or (0, np.zeros_like(g), np.zeros_like(g))
        state = AdamState(steps + 1, self.beta_1 * m + (1 - self.beta_1) * g, self.beta_2 * v + (1 - self.beta_2) * g * g)
        first = state.first / (1 - self.beta_1**state.steps)
        second = state.second / (1 - self.beta_2**state.steps)
        return descended(theta, self.lr * first / (np.sqrt(second) + self.tau)), state
