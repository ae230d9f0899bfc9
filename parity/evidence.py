"""What the rungs look at: both runs of a pair, and the window in which they may be compared.

**Window.** Runs end anywhere, so only a common logical prefix is compared. `cycles` is the number of
closes that both have; a sequence is compared over these. `bins` is the number of bins that both
*completed* (committed); statistics per bin use these alone, because a truncated bin would look like
a short one. The first intrusion (something outside the closed world) in either run ends both at its
cycle, and so does `--max-bin`. What was cut, and by what, is part of the report.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeVar

import polars as pl

from flame.config import Condition
from flame.telemetry.columns import KINDS, columns, level
from flame.telemetry.records import LEVELS
from flame.telemetry.rundir import RunDir, Verdict

Made = TypeVar("Made")
Side = Literal["real", "sim"]
SIDES: tuple[Side, Side] = ("real", "sim")
CLOCK = "agg_round.clock"
"""A need: the run's own clock at each close."""

SOMETIMES = ("withheld", "abandoned")
"""Kinds that a run has only where trainers are away."""

AT_A_BOUND = ("COMPLETED", "DID_NOT_CONVERGE")
"""Verdicts of a run that ended because one of its bounds was reached."""
BY_RULES = ("COMPLETED", "CONVERGED", "STALLED", "DID_NOT_CONVERGE", "STARVED", "DIVERGED")
"""Verdicts by which the machine itself ends a run: both runs of an exact pair must reach them at the same cycle."""


class Run:
    """One side of a pair."""

    def __init__(self, side: Side, dir: RunDir) -> None:
        self.side, self.dir = side, dir
        self._derived: dict[Callable[[Run], Any], Any] = {}
        self._lacks: dict[str, str | None] = {}

    def derived(self, make: "Callable[[Run], Made]") -> Made:
        """What `make` makes of this run, made once: several rungs look at one ledger, one timeline."""
        if make not in self._derived:
            self._derived[make] = make(self)
        made: Made = self._derived[make]
        return made

    @property
    def condition(self) -> Condition:
        """The stored condition."""
        return self.dir.condition

    @property
    def verdict(self) -> Verdict | None:
        """How it ended; None when it hasn't."""
        return self.dir.verdict

    @property
    def level(self) -> str:
        """Its level of telemetry."""
        return self.dir.world.level

    def frame(self, kind: str, *names: str) -> pl.DataFrame:
        """The records of `kind`; with names, these columns of them, as is fit for kinds that have a row per update."""
        return self.dir.telemetry.frame(kind, *names)

    @cached_property
    def rounds(self) -> pl.DataFrame:
        """The closed cycles, in their order."""
        return self.frame("agg_round").sort("cycle", maintain_order=True)

    def accepts(self, *names: str) -> pl.DataFrame:
        """The updates that were taken, in the order of their release: cycle and these columns of them."""
        taken = self.frame("accepted", "accepted", "_seq", "cycle", *names).filter("accepted").sort("_seq")
        return taken.select("cycle", *names)

    @cached_property
    def members(self) -> pl.DataFrame:
        """The members of the closed cycles, in commit order: cycle, _seq and _t_ns of the close, place, and what a cohort says of each.

        Raises ValueError for a close without its cohort.
        """
        if self.rounds["cohort"].null_count():
            raise ValueError("a close doesn't say its cohort")
        cohorts = self.rounds.select("cycle", "_seq", "_t_ns", "cohort").filter(pl.col("cohort").list.len() > 0)
        placed = cohorts.with_columns(place=pl.int_ranges(pl.col("cohort").list.len()))
        return placed.explode("cohort", "place").unnest("cohort")

    @property
    def clock(self) -> Literal["wall_s", "vclock_ns"]:
        """The column of agg_round that is its own clock: wall for real, virtual for a sim."""
        return "wall_s" if self.dir.world.kind == "real" else "vclock_ns"

    def lacks(self, need: str) -> str | None:
        """Why `need` (kind.column) isn't there; None when it is."""
        if need not in self._lacks:
            self._lacks[need] = self._lack(need)
        return self._lacks[need]

    def _lack(self, need: str) -> str | None:
        if need == CLOCK:
            need = f"agg_round.{self.clock}"
        kind, _, name = need.partition(".")
        if kind == "verdict":
            verdict = self.verdict
            absent = verdict is None or getattr(verdict, name) is None
            return f"{self.side} has no `{need}`" if absent else None
        if LEVELS.index(level(kind)) > LEVELS.index(self.dir.world.level):
            return f"{self.side} has telemetry level `{self.level}`, `{need}` is of level `{level(kind)}`"
        column = self.frame(kind, name)[name]
        if not column.len():
            return f"{self.side} has no `{need}`: no {kind} record"
        return f"{self.side} has no `{need}`" if column.null_count() == column.len() else None


@dataclass(slots=True)
class Pair:
    """A real run and its simulated twin."""

    real: Run
    sim: Run

    @property
    def runs(self) -> tuple[Run, Run]:
        """Both, real first."""
        return self.real, self.sim

    @property
    def condition(self) -> Condition:
        """The condition that both were given (the real run's, should they differ)."""
        return self.real.condition

    @property
    def exact(self) -> bool:
        """Whether LOGICAL rungs demand equality."""
        return all(run.condition.tier == "exact" for run in self.runs)

    @property
    def tier(self) -> Literal["exact", "fidelity"]:
        """`exact` or `fidelity`."""
        return "exact" if self.exact else "fidelity"

    def lacking(self, needs: tuple[str, ...], reads: tuple[str, ...] = ()) -> str | None:
        """Why the first absent need is absent; None when nothing is. Of `reads`, a kind that not every run has is whole where it is."""
        holes = [f"{kind}.{c.name}" for kind in reads if kind in SOMETIMES for c in columns(kind) if c.path[0] == "record"]
        for run in self.runs:
            for field in holes:
                if run.frame(field.partition(".")[0], "_seq").height and (reason := run.lacks(field)):
                    return reason
        for need in needs:
            sides, _, field = need.rpartition(":")
            for run in self.runs:
                reason = run.lacks(field) if sides in ("", run.side) else None
                if reason:
                    return reason
        return None


@dataclass(frozen=True, slots=True)
class Window:
    """The part of both runs that is compared.

    cycles: closes in common. bins: bins completed in common. bin_cycles: how many closes these
    bins took, per side. last: (round, data_id) of the last common bin. cut: the intrusion that ended it.
    limited: something from outside (an intrusion, `--max-bin`) made it shorter than the runs are.
    """

    cycles: int
    bins: int
    bin_cycles: dict[Side, int]
    last: tuple[int, int] | None
    cut: str | None = None
    limited: bool = False

    def __str__(self) -> str:
        bins = "no completed bin" if self.bins == 0 else f"bins 0-{self.bins - 1}" if self.bins > 1 else "bin 0"
        return f"{bins}, {self.cycles} cycles" + (f"; {self.cut}" if self.cut else "")

    def is_empty(self, over: str) -> bool:
        """Whether there is nothing of that span to look at."""
        return {"run": False, "cycles": self.cycles == 0, "bins": self.bins == 0}[over]

    def in_cycles(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The rows that belong to the common cycles."""
        return frame.filter(pl.col("cycle") < self.cycles)

    def in_bins(self, run: Run, frame: pl.DataFrame) -> pl.DataFrame:
        """The rows that belong to the common completed bins of `run`."""
        return frame.filter(pl.col("cycle") < self.bin_cycles[run.side])


def window_of(pair: Pair, max_bin: int | None = None) -> Window:
    """The common window, up to and including bin number `max_bin` (bins are counted from 0, laps go on counting)."""
    limit, cut = _intrusion(pair)
    limited = cut is not None
    commits = {run.side: _commits(run, limit) for run in pair.runs}
    bins = min(map(len, commits.values()))
    cycles = min(limit, *(_closes(run) for run in pair.runs))
    if max_bin is not None and bins > max_bin:
        bins, limited = max_bin + 1, True
        cycles = min(cycles, *(ends[max_bin] + 1 for ends in commits.values()))
    ends: dict[Side, int] = {side: commits[side][bins - 1] + 1 if bins else 0 for side in SIDES}
    return Window(cycles, bins, ends, _bin(pair.real, ends["real"] - 1) if bins else None, cut, limited)


def _closes(run: Run) -> int:
    """How many cycles the run closed, by their ordinals: a record that is missing in the middle still counts."""
    last = run.rounds["cycle"].max()
    return last + 1 if isinstance(last, int) else 0


def _commits(run: Run, limit: int) -> list[int]:
    """Cycles that completed a bin, before `limit`."""
    committed = run.rounds.filter(pl.col("committed") & (pl.col("cycle") < limit))
    return committed["cycle"].to_list()


def _bin(run: Run, cycle: int) -> tuple[int, int]:
    row = run.rounds.filter(pl.col("cycle") == cycle).row(0, named=True)
    return row["round"], row["data_id"]


def _intrusion(pair: Pair) -> tuple[int, str | None]:
    """The first cycle that an intrusion touched, and what it was."""
    found = sorted(_intrusions(pair))
    if not found:
        return 1 << 62, None
    cycle, side, what = found[0]
    return cycle, f"cut at cycle {cycle} by an intrusion in {side}: {what}"


def _intrusions(pair: Pair) -> Iterator[tuple[int, Side, str]]:
    for run in pair.runs:
        for cycle, what in run.frame("intrusion").select("cycle", "what").drop_nulls("cycle").iter_rows():
            yield cycle, run.side, what


def kinds_of(needs: tuple[str, ...]) -> set[str]:
    """The record kinds that `needs` name."""
    return {need.rpartition(":")[2].partition(".")[0] for need in needs} & KINDS.keys()
