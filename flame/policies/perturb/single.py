"""One random direction: the plain forward gradient (Baydin et al. 2022)."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from flame.learn.params import Layout, Vector
from flame.policies.perturb.noise import Distribution, direction
from flame.policies.policy import Policy


class Single(Policy):
    """One probe; the upload is d v."""

    type: Literal["single"] = "single"
    distribution: Distribution = "gaussian"

    def wants_direction(self, version: int, data_id: int) -> bool:
        """Never: the last committed direction plays no part."""
        return False

    def draw(self, seed: int, layout: Layout, towards: Vector | None) -> NDArray[np.float64]:
        """The probes, (1, p)."""
        return direction(seed, 0, layout.size, self.distribution)[None]
