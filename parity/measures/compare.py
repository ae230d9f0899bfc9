"""Equality of two labelled series, told in the manner of numpy.testing.

How many differ and in percent, where the first one is, the first five with both values, and the
largest absolute and relative difference where the values are numbers. Values are equal when they are
the same value: no tolerance lives here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import TypeGuard

import numpy as np
from numpy.typing import NDArray

from parity.exhibits import Sequences
from parity.rung import Finding, failed, passed, skipped

SHOWN = 5
"""How many differing places are written out."""
MEMBERS = 8
"""How many members of a list are written out."""

NOTHING = "nothing"

Series = Mapping[str, object]
"""Label of a place ("cycle 12") -> value."""


def equal(what: str, real: Series, sim: Series) -> Finding:
    """Whether both series have the same places with the same values. what: the plural of a place, such as `cycles`."""
    places = list(real) + [place for place in sim if place not in real]
    if not places:
        return skipped(f"no {what} to compare", n=0)
    parted = [place not in real or place not in sim or not same(real[place], sim[place]) for place in places]
    exhibit = Sequences(what, places, [real.get(place) for place in places], [sim.get(place) for place in places], parted)
    wrong = [place for place, apart in zip(places, parted, strict=True) if apart]
    return replace(_judged(what, wrong, len(places), real, sim), exhibit=exhibit)


def _judged(what: str, wrong: Sequence[str], n: int, real: Series, sim: Series) -> Finding:
    if not wrong:
        return passed(f"{n} {what} equal", effect=0.0, tol=0.0, n=n)
    pairs = [(real[place], sim[place]) for place in wrong if place in real and place in sim]
    numbers = [(one, two) for one, two in pairs if _is_number(one) and _is_number(two)]
    apart = np.array(numbers, np.float64) if numbers else None
    return differing(what, len(wrong), n, {place: (real.get(place, NOTHING), sim.get(place, NOTHING)) for place in wrong[:SHOWN]}, apart)


def differing(what: str, wrong: int, n: int, first: Mapping[str, tuple[object, object]], numbers: NDArray[np.float64] | None) -> Finding:
    """The finding of so many wrong places. first: both values at the first of them. numbers: both values wherever they are such."""
    detail = [f"{place}: {_parted(*both)}" for place, both in first.items()]
    detail += [f"and {wrong - len(first)} more"] if wrong > len(first) else []
    detail += [_largest(numbers)] if numbers is not None else []
    return failed(f"{mismatch(wrong, n, what)}, first at {next(iter(first))}", effect=wrong / n, tol=0.0, n=n, detail=detail)


def mismatch(wrong: int, n: int, what: str) -> str:
    """`3 of 47 cycles differ (6.4 %)`."""
    return f"{wrong} of {n} {what} {'differs' if wrong == 1 else 'differ'} ({100 * wrong / max(1, n):.1f} %)"


def same(one: object, two: object) -> bool:
    """Whether two values are the same; NaN is the same as NaN."""
    return one == two or (one != one and two != two)  # noqa: PLR0124


def show(value: object) -> str:
    """A value as a report has it: `-` where there is none, lists in brackets without commas."""
    if value is None:
        return "-"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {show(item)}" for key, item in value.items())
    if _is_list(value):
        return f"[{' '.join(show(item) for item in value)}]"
    return str(value)


def show_both(real: Sequence[object], sim: Sequence[object]) -> tuple[str, str]:
    """Two lists, written from shortly before the place where they part when they are long."""
    if max(len(real), len(sim)) <= MEMBERS:
        return show(real), show(sim)
    parted = next((place for place, (one, two) in enumerate(zip(real, sim, strict=False)) if one != two), min(len(real), len(sim)))
    start = max(0, parted - 2)
    return _part(real, start), _part(sim, start)


def _part(members: Sequence[object], start: int) -> str:
    inside = " ".join(show(member) for member in members[start : start + MEMBERS])
    after = f" ... of {len(members)}" if start + MEMBERS < len(members) else ""
    return f"[{'... ' if start else ''}{inside}{after}]"


def _parted(real: object, sim: object) -> str:
    """Both values; of two mappings only what differs."""
    if isinstance(real, Mapping) and isinstance(sim, Mapping):
        keys = [key for key in real if not same(real[key], sim.get(key))]
        return "; ".join(f"{key} {_parted(real[key], sim.get(key))}" for key in keys)
    if _is_list(real) and _is_list(sim):
        real, sim = show_both(real, sim)
    return f"real {show(real)}   sim {show(sim)}"


def _is_list(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _largest(pairs: NDArray[np.float64]) -> str:
    """The largest gap of any (one, two), and the largest relative to the one."""
    gaps, sizes = np.abs(pairs[:, 0] - pairs[:, 1]), np.abs(pairs[:, 0])
    relative = np.divide(gaps, sizes, out=np.full(gaps.size, inf), where=sizes > 0)
    return f"largest absolute difference {gaps.max():.6g}, relative {relative.max():.3g}"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
