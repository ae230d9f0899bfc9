"""From slopes to an upload: what all perturbations answer, and how.

A perturbation draws probes v_i and, once their slopes d_i are measured, combines them into one upload:

    ghat = (1/k) sum d_i v_i   over the k probes that are sent

`upload` is that sum, for the trainer and for whoever rebuilds it from seed, scalars and choice: it runs in
the order of the probes and in float64. The slopes have the precision of theta, so that they are the same
numbers on both sides of a wire. A choice says which probes were sent, where the seed alone doesn't.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from flame.core.rng import perturbation
from flame.learn.params import Layout, Vector

Wide = NDArray[np.float64]
Choice = tuple[int, ...]
Key = tuple[int, str, int, int, int, int]
"""What an assign's probes are seeded by: the run's seed, node, version, bin, draw, and the assign's id."""


@dataclass(frozen=True, slots=True)
class Combined:
    """delta: the upload (p,). index: the probe that it is made of, None for all. scalars: the slopes that went in, in order."""

    delta: Wide
    index: int | None
    scalars: Wide


class PerturbRule(Protocol):
    """One perturbation."""

    @property
    def probes(self) -> int:
        """P: how many directions are measured for one upload."""
        ...

    @property
    def worth(self) -> float:
        """p E[cos^2] of an upload with the gradient: how many random directions' mean would know as much."""
        ...

    def dealt(self, seed: int, turn: int) -> int:
        """The seed of the `turn`-th assign of a run, where its turn plays a part."""
        ...

    def wants_direction(self, version: int, data_id: int) -> bool:
        """Whether u, the last committed direction, is used for this bin."""
        ...

    def draw(self, seed: int, layout: Layout, towards: Vector | None) -> Wide:
        """The probes (P, p), a function of the arguments alone."""
        ...

    def combine(self, seed: int, slopes: Wide, probes: Wide) -> Combined:
        """The upload, from the slopes (P,) along the probes (P, p)."""
        ...

    def choice(self, seed: int, layout: Layout, towards: Vector | None, index: int | None) -> Choice:
        """What must be told beside seed and scalars. towards: as it was drawn with. index: as it was combined."""
        ...

    def sent(self, seed: int, layout: Layout, choice: Choice) -> Wide:
        """The probes (k, p) that an upload with this choice is made of, the same bits as when they were drawn."""
        ...

    def told(self, layout: Layout) -> tuple[int, int]:
        """How many scalars an upload has, and numbers in its choice: the most, where it depends."""
        ...

    def drawn(self, layout: Layout) -> int:
        """How many random numbers rebuilding an upload takes, the most, where it depends."""
        ...

    def fits(self, seed: int, layout: Layout, scalars: int, choice: Choice) -> bool:
        """Whether an upload of that seed can have so many scalars, and that choice."""
        ...


def seed_of(rule: PerturbRule, key: Key) -> int:
    """The seed of an assign's probes, which both ends derive."""
    seed, node, version, data_id, draw, turn = key
    return rule.dealt(perturbation(seed, node, version, data_id, draw), turn)


def upload(scalars: Vector, probes: Wide) -> Wide:
    """(1/k) sum d_i v_i, (p,), from k scalars and probes (k, p)."""
    total: Wide = np.add.reduce(scalars.astype(np.float64)[:, None] * probes, axis=0)
    return total / len(probes)


def rebuilt(rule: PerturbRule, seed: int, layout: Layout, scalars: Vector, choice: Choice) -> Vector:
    """The upload (p,) of which only the scalars and the choice were sent, in theta's dtype."""
    return upload(scalars, rule.sent(seed, layout, choice)).astype(layout.dtype)


def one_of(slopes: Wide, probes: Wide, index: int) -> Combined:
    """d v of one probe."""
    own = slice(index, index + 1)
    return Combined(upload(slopes[own], probes[own]), index, slopes[own])
