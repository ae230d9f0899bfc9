"""The story of a parting: where two runs first differ, in which row, and why; with the command that shows the place.

`parity.explainer.explain` finds it. A story is plain data: `lines()` is what people read, `plain()` what machines do.
"""

from dataclasses import asdict, dataclass
from typing import Any, Literal

from parity.measures.compare import show_both

Cause = Literal["RACE", "OVERRUN", "LOST", "FAULT", "LOGIC", "UNKNOWN"]

MEANINGS: dict[Cause, str] = {
    "RACE": "two stamps or arrivals closer than the measured jitter",
    "OVERRUN": "a compute longer than its D",
    "LOST": "an update that was sent and never received",
    "FAULT": "a peer or a connection down, or a run that was ended from outside",
    "LOGIC": "the same inputs and different effects",
    "UNKNOWN": "nothing in the telemetry explains it",
}

Names = tuple[str, str]
"""What the two runs are called: (real, sim), or (first, second) where both are of one world."""


@dataclass(frozen=True, slots=True)
class Member:
    """One contributor of a cycle, in commit order."""

    trainer: str
    id: int
    dispatched_ns: int
    stamp_ns: int


@dataclass(frozen=True, slots=True)
class Cohort:
    """A cycle as one run closed it. closed_ns: None where the run never closed it."""

    members: tuple[Member, ...]
    closed_ns: int | None


@dataclass(frozen=True, slots=True)
class Place:
    """One row of a released sequence. step: of the journal; None where there is none. text: the row, for people."""

    text: str
    step: int | None


@dataclass(frozen=True, slots=True)
class Story:
    """Where and why two runs part.

    cycle: the first that differs; `at` its (round, data_id, iteration). row: number of the first differing released
    row, None where no row differs; real, sim: that row in either run, None where the run has no more. step: of
    `node`'s journal in run `side`, the one to look at. evidence: one line each. command: shows the node's state there.
    """

    cause: Cause
    cycle: int
    at: tuple[int, int, int] | None
    cohorts: tuple[Cohort, Cohort]
    row: int | None
    real: Place | None
    sim: Place | None
    evidence: tuple[str, ...]
    node: str
    step: int | None
    command: str
    names: Names = ("real", "sim")

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> list[str]:
        """A few plain lines, the cause first, the command last."""
        where = "" if self.at is None else " (round {}, bin {}, iteration {})".format(*self.at)
        lines = [f"{self.cause}: {MEANINGS[self.cause]}; the runs part at cycle {self.cycle}{where}", *self._cohorts()]
        if self.row is not None:
            lines += [f"row {self.row}: {name} {_place(place)}" for name, place in zip(self.names, (self.real, self.sim), strict=True)]
        return [*lines, *self.evidence, f"hint: {self.command}"]

    def plain(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)

    def _cohorts(self) -> list[str]:
        told = [[f"{each.trainer} {each.stamp_ns / 1e9:.3f}" for each in cohort.members] for cohort in self.cohorts]
        both = zip(self.names, show_both(*told), self.cohorts, strict=True)
        return [f"{name} {members} {_closed(cohort)}" for name, members, cohort in both]


def _closed(cohort: Cohort) -> str:
    return "never closed" if cohort.closed_ns is None else f"closed {cohort.closed_ns / 1e9:.3f}"


def _place(place: Place | None) -> str:
    if place is None:
        return "has no more rows"
    return place.text if place.step is None else f"{place.text} (step {place.step})"
