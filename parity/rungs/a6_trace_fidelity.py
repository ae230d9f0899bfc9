"""A6: what each run says of its trainers' absence is what the traces say."""

from typing import Any

import polars as pl

from flame.core.time import in_seconds
from flame.core.trace import Trace
from parity.derived.presence import NO_TIME, next_available_at, traces_of, unwatched
from parity.evidence import Pair, Run, Window
from parity.measures.tables import in_order
from parity.rung import INV, LOGICAL, Finding, rung, skipped
from parity.single import Look, in_each


@rung(
    id="A6",
    name="trace_fidelity",
    stage=2,
    tier=INV,
    domain=LOGICAL,
    needs=["dispatch.stamp_ns", "dispatch.due_ns", "dispatch.delay_ns", "dispatch.up_ns"],
    reads=["withheld"],
    upstream=["A5"],
)
def trace_fidelity(pair: Pair, window: Window) -> Finding:
    """Whoever is away when its work is done has its update withheld up to the trace's next available instant, and nobody else has.

    What it checks: in each run, each assign against the trace file. Matched: withheld, and due when the trace says that the
        trainer is back. Missed: away then, and not withheld. Spurious: withheld, and there.
    Why: an absence that is counted on another clock, or with another period, is plausible everywhere and right nowhere.
    Reads: dispatch, withheld; the traces of the condition.
    Statistic: number of assigns that contradict the trace.
    Tolerance: 0 in both tiers: a due is modelled, so there is no 30 s to allow.
    Known limits: the trace is asked at the ends of assigns, the only instants at which a run acts on it. That a due which was
        withheld is the one that the dispatch has is K6's affair. SKIP where nobody is ever away.
    """
    nothing = unwatched(pair)
    return skipped(nothing) if nothing else in_each(pair.runs, against_trace, "assigns")


def against_trace(run: Run) -> Look:
    """The assigns of `run` whose due isn't what the trace of their trainer says."""
    known = run.derived(traces_of)
    withheld = run.frame("withheld").select("id", held="due_ns").unique("id", keep="last")
    rows = run.frame("dispatch", "_seq", "id", "trainer", "stamp_ns", "delay_ns", "up_ns", "due_ns").sort("_seq")
    rows = in_order(rows.with_columns(done=pl.col("stamp_ns") + pl.col("delay_ns") - pl.col("up_ns"))).join(withheld, on="id", how="left")
    parts = rows.partition_by("trainer", as_dict=True)
    asked = [rows.clear().with_columns(back="done"), *(_asked(own, known.get(str(node))) for (node,), own in parts.items())]
    told = pl.concat(asked).with_columns(counts=pl.col("back") + pl.col("up_ns")).sort("number")
    there, in_time = pl.col("back").eq_missing(pl.col("done")), pl.col("counts").eq_missing(pl.coalesce("held", "due_ns"))
    wrong = told.filter(~((pl.col("held").is_null() == there) & in_time))
    faults = [_fault(row) for row in wrong.iter_rows(named=True)]
    matched = told.filter(pl.col("held") == pl.col("counts")).height
    return Look(rows.height, faults, f"matched {matched} withheld updates")


def _asked(assigns: pl.DataFrame, trace: Trace | None) -> pl.DataFrame:
    """The assigns of one trainer with `back`: from when on it can send, null for never."""
    if trace is None:
        return assigns.with_columns(back=pl.lit(None, pl.Int64))
    back = pl.Series(next_available_at(trace, assigns["done"].to_numpy()))
    return assigns.with_columns(back=pl.when(back < NO_TIME).then(back))


def _fault(row: dict[str, Any]) -> str:
    """What is wrong with an assign, in words."""
    who, done = f"id {row['id']} of `{row['trainer']}`", f"{in_seconds(row['done']):.3f}"
    if row["held"] is not None and row["back"] == row["done"]:
        return f"{who} is withheld at {done} (spurious): the trace has it there"
    if row["held"] is None and row["back"] != row["done"]:
        return f"{who} isn't withheld at {done} (missed): the trace has it away"
    return f"{who} counts at {in_seconds(row['due_ns']):.3f}, by the trace at {_told(row['counts'])}"


def _told(back: int | None) -> str:
    return "no time" if back is None else f"{in_seconds(back):.3f}"
