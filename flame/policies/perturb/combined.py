"""From slopes to an upload: what all perturbations answer, and how.

A perturbation draws probes v_i and, once their slopes d_i are measured, combines them into one upload.
The same function rebuilds the upload from seed and scalars, so its sums run in the order of the
probes and in float64.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from flame.learn.params import Layout, Vector

Wide = NDArray[np.float64]


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


def one_of(slopes: Wide, probes: Wide, index: int) -> Combined:
    """d v of one probe."""
    return Combined(slopes[index] * probes[index], index, slopes[index : index + 1])
