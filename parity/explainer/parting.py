"""Where two released sequences part: the first row, content or effect that differs, seen through a view."""

from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal

from parity.derived.released import Released, Row, View

What = Literal["row", "content", "effects"]


@dataclass(frozen=True, slots=True)
class Parting:
    """The first difference. index: of the row (of effects: the row after which they differ; None at the start).

    what: another row, the same row with another content, or other effects of the same rows. effect: number of the first
    differing effect, the same in both streams. step: of the journal, in real and sim; None where there is none.
    """

    index: int | None
    what: What
    real: Row | None
    sim: Row | None
    step: tuple[int | None, int | None]
    effect: int | None = None


def parting(real: Released, sim: Released, view: View) -> Parting | None:
    """The first difference of two sequences, None when they are equal."""
    rows = list(zip_longest(real.rows, sim.rows))
    index = next((number for number, (one, two) in enumerate(rows) if not _same(one, two, view)), None)
    by_effects = _by_effects(real, sim, len(rows) if index is None else index)
    if by_effects is not None or index is None:
        return by_effects
    one, two = rows[index]
    what: What = "content" if one and two and view.same_key(one.key, two.key) else "row"
    return Parting(index, what, one, two, (_step(real, one), _step(sim, two)))


def _same(one: Row | None, two: Row | None, view: View) -> bool:
    return one is not None and two is not None and view.same_key(one.key, two.key) and one.content == two.content


def _by_effects(real: Released, sim: Released, until: int) -> Parting | None:
    """The first effect that differs though the rows before it are equal. Looked at where in both runs a step ended."""
    done = 0
    for rows in sorted(real.marks.keys() & sim.marks.keys()):
        if rows > until:
            return None
        mine, theirs = real.effects[done : real.marks[rows]], sim.effects[done : sim.marks[rows]]
        offset = next((number for number, (one, two) in enumerate(zip_longest(mine, theirs)) if _digest(one) != _digest(two)), None)
        if offset is not None:
            effect, row = done + offset, rows - 1 if rows else None
            one, two = (None, None) if row is None else (real.rows[row], sim.rows[row])
            return Parting(row, "effects", one, two, (_done_at(real, effect, row), _done_at(sim, effect, row)), effect)
        done = real.marks[rows]
    return None


def _digest(effect: tuple[int, str] | None) -> str | None:
    return None if effect is None else effect[1]


def _done_at(sequence: Released, effect: int, row: int | None) -> int | None:
    """The step of an effect; where one run did less, the step of the row."""
    if effect < len(sequence.effects):
        return sequence.effects[effect][0]
    return sequence.last if row is None else sequence.rows[row].step


def _step(sequence: Released, row: Row | None) -> int | None:
    return sequence.last if row is None else row.step
