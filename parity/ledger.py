"""The in-flight ledger of one run, read back from its telemetry.

A row is one assign: it begins with a dispatch and ends exactly once, by the close of the cycle that
took its update, by a reject, or by a void (an intrusion that gave it up, or its node's planned
departure). `seq` is the order in
which the aggregator emitted its records, so "before" is exact even where stamps are equal.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import polars as pl

from parity.evidence import Run

Ending = Literal["close", "reject", "void"]


@dataclass(slots=True)
class Row:
    """One assign. ends: how it ended, with seq and cycle; more than one is a fault. accepts: seqs of its acceptances."""

    id: int
    trainer: str
    seq: int
    cycle: int
    stamp_ns: int
    due_ns: int
    ends: list[tuple[Ending, int, int]] = field(default_factory=list)
    accepts: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Ledger:
    """All rows of a run by id, and what refers to no row."""

    rows: dict[int, Row] = field(default_factory=dict)
    twice: list[int] = field(default_factory=list)
    """Ids that were dispatched more than once."""
    strays: list[str] = field(default_factory=list)
    """Ends of rows that were never dispatched, in words."""
    closes: list[int] = field(default_factory=list)
    """Seqs of all closes, in order."""

    def busy_until(self, row: Row) -> int | None:
        """The earliest seq at which `row`'s node may have been free again; None when it never was.

        An accepted update holds its slot at least up to the next close, whichever cycle it is in.
        """
        if row.accepts:
            after = bisect_right(self.closes, row.accepts[0])
            return self.closes[after] if after < len(self.closes) else None
        return min((seq for _, seq, _ in row.ends), default=None)

    def by_trainer(self) -> dict[str, list[Row]]:
        """Each trainer's rows, in the order of their dispatch."""
        found: dict[str, list[Row]] = defaultdict(list)
        for row in sorted(self.rows.values(), key=lambda row: row.seq):
            found[row.trainer].append(row)
        return found

    @property
    def open(self) -> list[Row]:
        """Rows that have not ended."""
        return [row for row in self.rows.values() if not row.ends]


def ledger_of(run: Run) -> Ledger:
    """The ledger of `run`, from its dispatch, accepted, agg_round, intrusion and peer records."""
    ledger = Ledger(closes=run.rounds["_seq"].sort().to_list())
    for row in run.frame("dispatch").sort("_seq").iter_rows(named=True):
        if row["id"] in ledger.rows:
            ledger.twice.append(row["id"])
        else:
            ledger.rows[row["id"]] = Row(row["id"], row["trainer"], row["_seq"], row["cycle"], row["stamp_ns"], row["due_ns"])
    for key, seq, cycle, taken in run.frame("accepted").select("id", "_seq", "cycle", "accepted").iter_rows():
        _accept(ledger, key, seq, cycle, taken)
    for ending, key, seq, cycle in _ends(run):
        if key in ledger.rows:
            ledger.rows[key].ends.append((ending, seq, cycle))
        else:
            ledger.strays.append(f"cycle {cycle}: {ending} of id {key}, which was never dispatched")
    _void_departed(run, ledger)
    return ledger


def _void_departed(run: Run, ledger: Ledger) -> None:
    """A node that leaves as planned takes its open row with it, unless the update was accepted before."""
    departed = run.frame("peer").filter(~pl.col("up") & pl.col("planned")).select("node", "_seq")
    for node, seq in departed.iter_rows():
        for row in ledger.rows.values():
            if row.trainer == node and row.seq < seq and not row.ends and not row.accepts:
                row.ends.append(("void", seq, row.cycle))


def _accept(ledger: Ledger, key: int, seq: int, cycle: int, taken: bool) -> None:
    row = ledger.rows.get(key)
    if row is None:
        ledger.strays.append(f"cycle {cycle}: release of id {key}, which was never dispatched")
    elif taken:
        row.accepts.append(seq)
    else:
        row.ends.append(("reject", seq, cycle))


def _ends(run: Run) -> Iterator[tuple[Ending, int, int, int]]:
    """(ending, id, seq, cycle) of closes and voids."""
    for cohort, seq, cycle in run.rounds.select("cohort", "_seq", "cycle").iter_rows():
        for member in cohort:
            yield "close", member["id"], seq, cycle
    voids = run.frame("intrusion").select("voided", "_seq", "cycle").filter(pl.col("voided").is_not_null())
    for voided, seq, cycle in voids.iter_rows():
        for key in voided:
            yield "void", key, seq, cycle
