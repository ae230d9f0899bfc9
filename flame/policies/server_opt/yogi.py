"""Yogi at the server (FedYogi: Reddi et al., ICLR'21, algorithm 2), which torch doesn't have.

    m <- b1 m + (1 - b1) G,   v <- v - (1 - b2) G^2 sign(v - G^2),   v starts at tau^2
    theta <- theta - lr m / (sqrt(v) + tau)

v moves by a step of the size of G^2 instead of a share of the gap, so one large G is not forgotten as
fast as in Adam. Nothing corrects the start: the first step is (1 - b1) of what a steady G gets later.
"""

from typing import Annotated, Literal, NamedTuple

import numpy as np
from pydantic import Field, PositiveFloat

from flame.learn.params import Vector
from flame.policies.policy import Policy
from flame.policies.server_opt.step import Wide, descended, wide
from flame.policies.server_opt.view import StepView

Beta = Annotated[float, Field(ge=0, lt=1)]


class YogiState(NamedTuple):
    """first, second: m and v, (p,)."""

    first: Wide
    second: Wide


class Yogi(Policy):
    """Descent by lr per coordinate, in units of the coordinate's own size."""

    type: Literal["yogi"] = "yogi"
    lr: PositiveFloat
    beta_1: Beta = 0.9
    beta_2: Beta = 0.99
    tau: PositiveFloat = 1e-3

    @property
    def gain(self) -> str:
        """It has none in the limit: the length of G cancels."""
        return f"about {self.lr:.3g} per coordinate in the limit, whatever G's length (over {self.tau:.3g})"

    def step(self, theta: Vector, aggregate: Vector, view: StepView, state: YogiState | None) -> tuple[Vector, YogiState]:
        """The next theta, and (m, v)."""
        g = wide(aggregate)
        m, v = state or (np.zeros_like(g), np.full_like(g, self.tau**2))
        square = g * g
        state = YogiState(self.beta_1 * m + (1 - self.beta_1) * g, v - (1 - self.beta_2) * square * np.sign(v - square))
        return descended(theta, self.lr * state.first / (np.sqrt(state.second) + self.tau)), state
