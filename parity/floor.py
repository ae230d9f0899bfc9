"""The replicate floor: how far runs of one condition in one world are apart by themselves.

Two real runs in arrival order differ, and no simulator can be nearer to a real run than another real run is.
So a DIST rung is held against three things: its tolerance, what chance explains at its n, and this floor.

- FAIL asks for an effect over the tolerance, beyond chance, and beyond every effect among the replicates.
- PASS asks for a floor that isn't over the tolerance: where replicates are farther apart than that, a shift of
  the tolerance's size can't be told from noise.
- A tolerance of 0 is a law, and a rung that is `alone` judges each run by itself: no replicate excuses either.

The floor of a rung is the worst effect over the ordered pairs of the replicates, as some are one-sided. A few
replicates say how large noise can be, not how seldom: the floor lifts failures, and never makes one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from parity.rung import Measure, Rung

OWN = ""
"""The name under which a finding without measures keeps its number."""


@dataclass(frozen=True, slots=True)
class Floor:
    """What the replicates measured. runs: their names. effects: rung -> measure -> an effect for each ordered pair."""

    runs: tuple[str, ...]
    effects: Mapping[str, Mapping[str, tuple[float, ...]]] = field(repr=False)

    @property
    def pairs(self) -> int:
        """Ordered pairs."""
        return len(self.runs) * (len(self.runs) - 1)

    def of(self, rung: Rung, measure: Measure) -> float | None:
        """The largest effect of that measure among the replicates; None when it wasn't measured."""
        return max(self._effects(rung, measure.name), default=None)

    def of_number(self, rung: Rung, effect: float, tol: float, ok: bool) -> float | None:
        """The worst number of a rung without measures: the least, where `effect` and its verdict show that more is better."""
        found = self._effects(rung, OWN)
        more_is_better = effect > tol if ok else effect < tol
        return (min if more_is_better else max)(found, default=None)

    def _effects(self, rung: Rung, name: str) -> tuple[float, ...]:
        return self.effects.get(rung.id, {}).get(name, ())


NONE = Floor((), {})
"""No replicates: chance and tolerance are all there is."""
