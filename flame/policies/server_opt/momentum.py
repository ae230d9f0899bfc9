"""Heavy ball (Polyak 1964), as torch.optim.SGD has it without dampening.

    b <- beta b + G,   theta <- theta - lr b

A steady G moves theta by lr at first and by lr / (1 - beta) in the limit: ten times lr at 0.9.
"""

from typing import Annotated, Literal

from pydantic import Field, PositiveFloat

from flame.learn.params import Vector
from flame.policies.policy import Policy
from flame.policies.server_opt.step import Wide, descended, wide
from flame.policies.server_opt.view import StepView


class Momentum(Policy):
    """Descent along the decaying sum of aggregates. The state is that sum, b (p,)."""

    type: Literal["momentum"] = "momentum"
    lr: PositiveFloat
    beta: Annotated[float, Field(ge=0, lt=1)] = 0.9

    @property
    def gain(self) -> str:
        """At first and in the limit."""
        return f"{self.lr:.3g} at first, {self.lr / (1 - self.beta):.3g} in the limit"

    def step(self, theta: Vector, aggregate: Vector, view: StepView, state: Wide | None) -> tuple[Vector, Wide]:
        """The next theta and b."""
        ball = wide(aggregate) if state is None else self.beta * state + aggregate
        return descended(theta, self.lr * ball), ball
