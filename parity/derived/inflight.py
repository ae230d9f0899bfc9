"""Who was in flight when, in stamps: the ledger's rows as intervals, a lane per trainer.

A row lasts from its dispatch to its end (close, reject, void), or to the last record of the run when it was still
open. One that begins before the row before it has ended overlaps it, which R1 forbids.
"""

from collections.abc import Mapping
from typing import Any

import polars as pl

from parity.derived.ledger import ledger_of
from parity.evidence import Run
from parity.exhibits import Interval, Rows

ENDED_BY = ("accepted", "agg_round", "intrusion", "peer")
"""Kinds of the records that end a row."""


def timeline_of(run: Run) -> Mapping[str, Rows[Interval]]:
    """Trainer -> its intervals, in the order of their dispatch; every trainer of the condition has a lane. For `run.derived`."""
    ledger = run.derived(ledger_of)
    begins = run.frame("dispatch", "id", "stamp_ns").drop_nulls().unique("id", keep="last").rename({"stamp_ns": "begin"})
    stamps = _stamps(run)
    ends = ledger.ends.join(stamps, on="seq").group_by("id").agg(end=pl.col("stamp").min())
    last = max([begins["begin"].max() or 0, stamps["stamp"].max() or 0])
    rows = ledger.successions().join(begins, on="id", maintain_order="left").join(ends, on="id", how="left", maintain_order="left")
    end = pl.max_horizontal("begin", pl.col("end").fill_null(last))
    bars = rows.select("trainer", "begin", "overlaps", end=end).partition_by(
        "trainer", as_dict=True, include_key=False, maintain_order=True
    )
    lanes = {str(trainer): own for (trainer,), own in bars.items()}
    none = rows.select("begin", "end", "overlaps").clear()
    return {node: Rows(lanes.get(node, none), _interval) for node in [*run.condition.nodes, *lanes]}


def _interval(row: dict[str, Any]) -> Interval:
    return row["begin"], row["end"], row["overlaps"]


def _stamps(run: Run) -> pl.DataFrame:
    """seq, stamp of the aggregator's records that may end a row."""
    frames = [run.frame(kind, "_node", "_seq", "_stamp_ns").filter(pl.col("_node") == "aggregator") for kind in ENDED_BY]
    told = pl.concat(frames).select(seq="_seq", stamp="_stamp_ns").drop_nulls()
    return told.unique("seq", keep="last")
