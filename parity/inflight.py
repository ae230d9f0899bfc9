"""Who was in flight when, in stamps: the ledger's rows as intervals, a lane per trainer.

A row lasts from its dispatch to its end (close, reject, void), or to the last record of the run when it was still
open. One that begins before the row before it has ended overlaps it, which R1 forbids.
"""

from dataclasses import dataclass

import polars as pl

from parity.evidence import Run
from parity.exhibits import Interval
from parity.ledger import Ledger, Row, ledger_of

ENDED_BY = ("accepted", "agg_round", "intrusion", "peer")
"""Kinds of the records that end a row."""


def timeline_of(run: Run) -> dict[str, list[Interval]]:
    """Trainer -> its intervals, in the order of their dispatch; every trainer of the condition has a lane. For `run.derived`."""
    ledger, stamps = run.derived(ledger_of), _stamps(run)
    lanes: dict[str, list[Interval]] = {node: [] for node in run.condition.nodes}
    for trainer, rows in ledger.by_trainer().items():
        pairs = [(before, row) for before, row in zip([None, *rows], rows, strict=False) if row.id in stamps.begins]
        lanes[trainer] = [(stamps.begins[row.id], stamps.end_of(row), overlapping(ledger, before, row)) for before, row in pairs]
    return lanes


def overlapping(ledger: Ledger, before: Row | None, row: Row) -> bool:
    """Whether `row` was dispatched while the row before it, of the same trainer, was open."""
    if before is None:
        return False
    free = ledger.busy_until(before)
    return free is None or free > row.seq


@dataclass(frozen=True, slots=True)
class _Stamps:
    """begins: id -> stamp of its dispatch, where it has one. ends: sequence number of a record that may end a row -> its stamp."""

    begins: dict[int, int]
    ends: dict[int, int]
    last: int

    def end_of(self, row: Row) -> int:
        """When the row ended, or the run did."""
        ends = [self.ends[seq] for _, seq, _ in row.ends if seq in self.ends]
        return max(self.begins[row.id], min(ends, default=self.last))


def _stamps(run: Run) -> _Stamps:
    frames = [run.frame(kind).filter(pl.col("_node") == "aggregator").select("_seq", "_stamp_ns") for kind in ENDED_BY]
    begins = dict(run.frame("dispatch").select("id", "stamp_ns").drop_nulls().iter_rows())
    ends = dict(pl.concat(frames).drop_nulls().iter_rows())
    return _Stamps(begins, ends, max([*begins.values(), *ends.values()], default=0))
