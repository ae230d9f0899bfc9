"""FwdLLM's guided perturbation: of several candidates, the one nearest to the last committed step.

Per tensor, the candidate with the largest cosine to u is kept (FwdLLM draws 10 m for a cohort of m and gives
client j the j-th best; drawing 10 per trainer and keeping one is what the `flame` fork does, and what is done
here). The estimate is biased, by the cross term above all (algorithms.md, section 2). Used when data_id is odd,
retries included, and from version 1 on.
"""

from typing import Literal

import numpy as np
from pydantic import PositiveInt

from flame.learn.params import Layout, Vector
from flame.policies.perturb.combined import Choice, Combined, Wide, one_of
from flame.policies.perturb.noise import Distribution, direction, directions
from flame.policies.policy import Policy


class Guided(Policy):
    """One probe, put together per tensor from the best of `candidates` by cosine to u."""

    type: Literal["guided"] = "guided"
    candidates: PositiveInt = 10
    distribution: Distribution = "gaussian"

    @property
    def probes(self) -> int:
        """P: one."""
        return 1

    @property
    def worth(self) -> float:
        """One direction: the candidates are compared with u, not with the gradient."""
        return 1.0

    def dealt(self, seed: int, turn: int) -> int:
        """The seed as it is: every assign probes everything."""
        return seed

    def wants_direction(self, version: int, data_id: int) -> bool:
        """Whether u is used for this bin: odd ones, from version 1 on."""
        return version >= 1 and data_id % 2 == 1

    def draw(self, seed: int, layout: Layout, towards: Vector | None) -> Wide:
        """The probes, (1, p). towards: u (p,), None where there is none: then the first candidate."""
        if towards is None:
            return direction(seed, 0, layout.size, self.distribution)[None]
        drawn = directions(seed, self.candidates, layout.size, self.distribution)
        return _put_together(drawn, layout, self._picked(drawn, layout, towards))

    def combine(self, seed: int, slopes: Wide, probes: Wide) -> Combined:
        """d v of the one probe that was put together."""
        return one_of(slopes, probes, 0)

    def choice(self, seed: int, layout: Layout, towards: Vector | None, index: int | None) -> Choice:
        """Per tensor, the candidate that was kept: who has no u can't know it."""
        if towards is None:
            return (0,) * len(layout.names)
        return self._picked(directions(seed, self.candidates, layout.size, self.distribution), layout, towards)

    def sent(self, seed: int, layout: Layout, choice: Choice) -> Wide:
        """The one probe, (1, p), put together again from those candidates."""
        return _put_together(directions(seed, max(choice) + 1, layout.size, self.distribution), layout, choice)

    def told(self, layout: Layout) -> tuple[int, int]:
        """One scalar, and a number a tensor."""
        return 1, len(layout.names)

    def drawn(self, layout: Layout) -> int:
        """All candidates, where the last of them was kept."""
        return self.candidates * layout.size

    def fits(self, seed: int, layout: Layout, scalars: int, choice: Choice) -> bool:
        """One scalar, and a candidate per tensor."""
        return scalars == 1 and len(choice) == len(layout.names) and max(choice) < self.candidates

    def _picked(self, drawn: Wide, layout: Layout, towards: Vector) -> Choice:
        return tuple(self._nearest(drawn[:, part], towards[part]) for _, part, _ in layout.slices())

    @staticmethod
    def _nearest(candidates: Wide, towards: Vector) -> int:
        dots = np.add.reduce(candidates * towards.astype(np.float64), axis=1)
        lengths = np.sqrt(np.add.reduce(candidates * candidates, axis=1))
        return int(np.argmax(dots / lengths))


def _put_together(drawn: Wide, layout: Layout, choice: Choice) -> Wide:
    """(1, p), each tensor from its candidate among `drawn` (candidates, p)."""
    probe = np.empty((1, layout.size))
    for (_, part, _), kept in zip(layout.slices(), choice, strict=True):
        probe[0, part] = drawn[kept, part]
    return probe
