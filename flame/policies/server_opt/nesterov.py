"""Nesterov's momentum as torch.optim.SGD has it; DiLoCo's outer step (Douillard et al. 2023), lr 0.7, beta 0.9.

    b <- beta b + G,   theta <- theta - lr (G + beta b)

A steady G moves theta by lr (1 + beta) at first and by lr / (1 - beta) in the limit: 1.33 and 7.
"""

from typing import Annotated, Literal

from pydantic import Field, PositiveFloat

from flame.learn.params import Vector
from flame.policies.policy import Policy
from flame.policies.server_opt.step import Wide, descended, wide
from flame.policies.server_opt.view import StepView


class Nesterov(Policy):
    """Momentum that looks one step ahead. The state is b (p,)."""

    type: Literal["nesterov"] = "nesterov"
    lr: PositiveFloat = 0.7
    beta: Annotated[float, Field(ge=0, lt=1)] = 0.9

    @property
    def gain(self) -> str:
        """At first and in the limit."""
        return f"{self.lr * (1 + self.beta):.3g} at first, {self.lr / (1 - self.beta):.3g} in the limit"

    def step(self, theta: Vector, aggregate: Vector, view: StepView, state: Wide | None) -> tuple[Vector, Wide]:
        """The next theta and b."""
        ball = wide(aggregate) if state is None else self.beta * state + aggregate
        return descended(theta, self.lr * (aggregate + self.beta * ball)), ball
