"""Several probes, averaged: the forward gradient with P times less variance, for P times the passes.

ghat = (1/P) sum d_i v_i,   E ||ghat - g||^2 = (p + 1) ||g||^2 / P   (gaussian)
"""

from typing import Literal

from pydantic import PositiveInt

from flame.learn.params import Layout, Vector
from flame.policies.perturb.combined import Choice, Combined, Wide, upload
from flame.policies.perturb.noise import Distribution, directions
from flame.policies.policy import Policy


class MeanOf(Policy):
    """The mean of d v over `probes` probes; the sum runs in their order."""

    type: Literal["mean_of"] = "mean_of"
    probes: PositiveInt = 10
    distribution: Distribution = "gaussian"

    @property
    def worth(self) -> float:
        """P directions: all are sent."""
        return float(self.probes)

    def dealt(self, seed: int, turn: int) -> int:
        """The seed as it is: every assign probes everything."""
        return seed

    def wants_direction(self, version: int, data_id: int) -> bool:
        """Never: the last committed direction plays no part."""
        return False

    def draw(self, seed: int, layout: Layout, towards: Vector | None) -> Wide:
        """The probes, (P, p)."""
        return directions(seed, self.probes, layout.size, self.distribution)

    def combine(self, seed: int, slopes: Wide, probes: Wide) -> Combined:
        """(1/P) sum d v."""
        return Combined(upload(slopes, probes), None, slopes)

    def choice(self, seed: int, layout: Layout, towards: Vector | None, index: int | None) -> Choice:
        """None: all are sent."""
        return ()

    def sent(self, seed: int, layout: Layout, choice: Choice) -> Wide:
        """All probes, (P, p)."""
        return self.draw(seed, layout, None)

    def told(self, layout: Layout) -> tuple[int, int]:
        """A scalar a probe."""
        return self.probes, 0

    def drawn(self, layout: Layout) -> int:
        """All probes."""
        return self.probes * layout.size

    def fits(self, seed: int, layout: Layout, scalars: int, choice: Choice) -> bool:
        """A scalar a probe."""
        return (scalars, choice) == (self.probes, ())
