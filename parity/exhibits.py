"""What a rung looked at, kept so that a page can draw it: both samples, both sequences, both timelines.

A finding is judged by its numbers alone. An exhibit decides nothing, is never compared, and may be absent:
it refers to what the rung had in its hands, in the order in which it had it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Side = Literal["real", "sim"]
Interval = tuple[int, int, bool]
"""Start and end in ns of stamps, and whether it overlaps the one before it."""


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """Both samples of one statistic; one is empty where one run was looked at. aligned: place i of one belongs to place i of the other."""

    real: NDArray[np.float64]
    sim: NDArray[np.float64]
    aligned: bool


@dataclass(frozen=True, slots=True, eq=False)
class Sequences:
    """Both sequences, place by place. what: the plural of a place. parted: where they differ."""

    what: str
    places: Sequence[str]
    real: Sequence[object]
    sim: Sequence[object]
    parted: Sequence[bool]


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """(how many were looked at, how many were wrong) of each side that was looked at. what: the plural of one."""

    what: str
    sides: Mapping[Side, tuple[int, int]]


@dataclass(frozen=True, slots=True, eq=False)
class Timelines:
    """Who was in flight when: the intervals of each trainer, per side."""

    sides: Mapping[Side, Mapping[str, Sequence[Interval]]]


Exhibit = Samples | Sequences | Tally | Timelines
