"""One random direction: the plain forward gradient (Baydin et al. 2022)."""

from typing import Literal

from flame.learn.params import Layout, Vector
from flame.policies.perturb.combined import Choice, Combined, Wide, one_of
from flame.policies.perturb.noise import Distribution, direction
from flame.policies.policy import Policy


class Single(Policy):
    """One probe; the upload is d v."""

    type: Literal["single"] = "single"
    distribution: Distribution = "gaussian"

    @property
    def probes(self) -> int:
        """P: one."""
        return 1

    @property
    def worth(self) -> float:
        """One direction."""
        return 1.0

    def dealt(self, seed: int, turn: int) -> int:
        """The seed as it is: every assign probes everything."""
        return seed

    def wants_direction(self, version: int, data_id: int) -> bool:
        """Never: the last committed direction plays no part."""
        return False

    def draw(self, seed: int, layout: Layout, towards: Vector | None) -> Wide:
        """The probes, (1, p)."""
        return direction(seed, 0, layout.size, self.distribution)[None]

    def combine(self, seed: int, slopes: Wide, probes: Wide) -> Combined:
        """d v."""
        return one_of(slopes, probes, 0)

    def choice(self, seed: int, layout: Layout, towards: Vector | None, index: int | None) -> Choice:
        """None: there is one probe."""
        return ()

    def sent(self, seed: int, layout: Layout, choice: Choice) -> Wide:
        """The probe, (1, p)."""
        return self.draw(seed, layout, None)

    def told(self, layout: Layout) -> tuple[int, int]:
        """One scalar."""
        return 1, 0

    def drawn(self, layout: Layout) -> int:
        """The one probe."""
        return layout.size

    def fits(self, seed: int, layout: Layout, scalars: int, choice: Choice) -> bool:
        """One scalar."""
        return (scalars, choice) == (1, ())
