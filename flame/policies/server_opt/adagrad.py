"""Adagrad at the server (FedAdagrad without momentum: Reddi et al., ICLR'21), by torch.optim.Adagrad's rule.

    v <- v + G^2,   theta <- theta - lr G / (sqrt(v) + tau)

v starts at 0 as torch's does (the paper: tau^2). A steady G moves theta less and less, by lr / sqrt(t).
"""

from typing import Literal

import numpy as np
from pydantic import PositiveFloat

from flame.learn.params import Vector
from flame.policies.policy import Policy
from flame.policies.server_opt.step import Wide, descended, wide
from flame.policies.server_opt.view import StepView


class Adagrad(Policy):
    """Descent by lr per coordinate, in units of all that the coordinate has seen. The state is v (p,)."""

    type: Literal["adagrad"] = "adagrad"
    lr: PositiveFloat
    tau: PositiveFloat = 1e-3

    @property
    def gain(self) -> str:
        """It has none: the length of G cancels."""
        return f"about {self.lr:.3g} / sqrt(t) per coordinate, whatever G's length (over {self.tau:.3g})"

    def step(self, theta: Vector, aggregate: Vector, view: StepView, state: Wide | None) -> tuple[Vector, Wide]:
        """The next theta and v."""
        g = wide(aggregate)
        seen = g * g if state is None else state + g * g
        return descended(theta, self.lr * g / (np.sqrt(seen) + self.tau)), seen
