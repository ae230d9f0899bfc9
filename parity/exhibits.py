"""What a rung looked at, kept so that a page can draw it: both samples, both sequences, both timelines.

A finding is judged by its numbers alone. An exhibit decides nothing, is never compared, and may be absent:
it refers to what the rung had in its hands, in the order in which it had it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, overload

import numpy as np
import polars as pl
from numpy.typing import NDArray

Side = Literal["real", "sim"]
MOST = 20_000
"""Values of a sample that are kept to be drawn."""
Told_co = TypeVar("Told_co", covariant=True)
Interval = tuple[int, int, bool]
"""Start and end in ns of stamps, and whether it overlaps the one before it."""


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """Both samples of one statistic; one is empty where one run was looked at. aligned: place i of one belongs to place i of the other."""

    real: NDArray[np.float64]
    sim: NDArray[np.float64]
    aligned: bool

    @classmethod
    def thinned(cls, real: NDArray[np.float64], sim: NDArray[np.float64], aligned: bool) -> "Samples":
        """As much of both as a picture can show: places, or quantiles, evenly."""
        one, two = (_spread(side if aligned or side.size <= MOST else np.sort(side)) for side in (real, sim))
        return cls(one, two, aligned)


def _spread(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return values if values.size <= MOST else values[np.linspace(0, values.size - 1, MOST).astype(np.int64)]


class Rows(Sequence[Told_co]):
    """The rows of a frame as a sequence of what `tell` makes of each, once it is looked at: a frame is small, its rows are not."""

    def __init__(self, frame: pl.DataFrame, tell: Callable[[dict[str, Any]], Told_co]) -> None:
        self._frame, self._tell = frame, tell

    def __len__(self) -> int:
        return self._frame.height

    @overload
    def __getitem__(self, place: int) -> Told_co: ...
    @overload
    def __getitem__(self, place: slice) -> "Rows[Told_co]": ...
    def __getitem__(self, place: int | slice) -> "Told_co | Rows[Told_co]":
        """One of them, or some."""
        if isinstance(place, slice):
            return Rows(self._frame[place], self._tell)
        return self._tell(self._frame.row(place, named=True))

    def __iter__(self) -> Iterator[Told_co]:
        return map(self._tell, self._frame.iter_rows(named=True))


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
