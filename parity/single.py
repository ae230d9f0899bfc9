"""Checks that one run must pass by itself: the shape shared by INV rungs and by `--validate`.

A look at one run returns what is wrong (in words, a line each) and how many things it looked at. One
that had nothing to look at says so, and is never a pass.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from parity.evidence import Run
from parity.exhibits import Tally
from parity.rung import Finding, failed, passed, skipped

SHOWN = 5


@dataclass(slots=True)
class Look:
    """What one look at a run found. n: things looked at. note: shown beside a pass."""

    n: int
    faults: Sequence[str] = field(default_factory=list)
    note: str = ""


def in_each(runs: Iterable[Run], look: Callable[[Run], Look], things: str) -> Finding:
    """One finding from a look at each run. things: what was looked at, such as `rows`."""
    looks = [(run.side, look(run)) for run in runs]
    nothing = [side for side, one in looks if one.n == 0 and not one.faults]
    if nothing:
        return skipped(f"{' and '.join(nothing)}: no {things} to look at")
    exhibit = Tally(things, {side: (one.n, len(one.faults)) for side, one in looks})
    return replace(_judged(looks, things), exhibit=exhibit)


def _judged(looks: Sequence[tuple[str, Look]], things: str) -> Finding:
    n, wrong = sum(one.n for _, one in looks), [(side, fault) for side, one in looks for fault in one.faults]
    if not wrong:
        notes = ", ".join(f"{side} {one.note}" for side, one in looks if one.note)
        return passed(f"{n} {things}" + (f"; {notes}" if notes else ""), effect=0.0, n=n)
    side, first = wrong[0]
    more = f" and {len(wrong) - 1} more" if len(wrong) > 1 else ""
    detail = [f"{side}: {fault}" for side, fault in wrong[:SHOWN]]
    return failed(f"{side}: {first}{more}", effect=float(len(wrong)), tol=0.0, n=n, detail=detail if more else ())
