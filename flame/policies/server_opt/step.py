"""What all server steps share: their protocol, and arithmetic in float64 that is rounded once.

A step is pure: it returns the next theta and the next state, and changes neither argument. State is
plain NumPy, None before the first commit.
"""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from flame.learn.params import Vector
from flame.policies.server_opt.view import StepView

Wide = NDArray[np.float64]


class ServerStep(Protocol):
    """One rule."""

    @property
    def gain(self) -> str:
        """How far a steady G moves theta per commit, in words for the pre-flight."""
        ...

    def step(self, theta: Vector, aggregate: Vector, view: StepView, state: Any) -> tuple[Vector, Any]:
        """The next theta (p,), a new array of theta's dtype, and the next state. view: of this commit."""
        ...


def wide(values: Vector) -> Wide:
    """In float64."""
    return values.astype(np.float64)


def descended(theta: Vector, by: Wide) -> Vector:
    """theta - by, in float64, rounded to theta's dtype."""
    return (theta.astype(np.float64) - by).astype(theta.dtype)
