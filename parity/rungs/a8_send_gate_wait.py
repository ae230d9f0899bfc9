"""A8: a trainer that is away waits as long as its trace says."""

import polars as pl

from parity.derived.presence import unwatched
from parity.evidence import Pair, Run, Window
from parity.measures.statistics import mean
from parity.rung import DIST, PHYSICAL, Finding, measured, rung, skipped
from parity.rungs.lt_lateness import TOL_S

MOST_S = 10.0


@rung(
    id="A8",
    name="send_gate_wait",
    stage=2,
    tier=DIST,
    domain=PHYSICAL,
    needs=["task_send.id", "dispatch.id"],
    reads=["withheld"],
    upstream=["A6"],
    alone=True,
)
def send_gate_wait(pair: Pair, window: Window) -> Finding:
    """An update whose trainer is away is sent when the trace has it back, by the clock of the run.

    What it checks: of each withheld update, how long after the modelled end of its work it was sent, against how long the
        trace makes it wait.
    Why: a gate that waits on another clock than the one it was asked for holds an update for minutes, or not at all.
    Reads: withheld, and the clock of task_send, in both runs.
    Statistic: difference of the mean waits, observed and expected, block permutation over aligned updates.
    Tolerance: 10 s of trace time, and no less than the 0.25 s that Lt allows.
    Known limits: work that overran its D is late for that. Both runs in full, the window or not. SKIP where nobody was.
    """
    nothing = unwatched(pair)
    if nothing:
        return skipped(nothing)
    tolerance = max(TOL_S, MOST_S / pair.condition.availability.time_scale)
    waits = {run.side: _waits(run) for run in pair.runs}
    empty = [side for side, frame in waits.items() if not frame.height]
    if empty:
        return skipped(f"{' and '.join(empty)}: no withheld update was sent", n=0)
    return measured(
        *(mean(frame["observed"], frame["expected"], tolerance, name=f"mean wait in {side}", aligned=True) for side, frame in waits.items())
    )


def _waits(run: Run) -> pl.DataFrame:
    """observed, expected seconds, by withheld update; of one that was sent again the first."""
    sent = run.frame("task_send", "id", "_t_ns").group_by("id").agg(sent_ns=pl.col("_t_ns").min())
    held = run.frame("withheld").sort("_seq").join(sent, on="id", how="inner", maintain_order="left")
    return held.select(observed=(pl.col("sent_ns") - pl.col("done_ns")) / 1e9, expected=(pl.col("due_ns") - pl.col("done_ns")) / 1e9)
