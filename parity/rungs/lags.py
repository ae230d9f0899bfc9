"""What U6, U6e and K11 share: how long an update waits at the aggregator, on its run's own clock.

Real: the wall since `ready`. Sim: the virtual clock. An update is delivered when it arrives, which in the
real run is its measured lateness after its due, and in the sim the due itself, or what a latency law adds to it.
"""

import polars as pl

from parity.evidence import Run

JITTER_S = 0.05
"""What a send may be late by, and still be in time: lags nearer than this are one lag."""


def delivered(run: Run) -> pl.DataFrame:
    """id, delivered_ns of each released update whose arrival is known."""
    released = run.frame("accepted", "id", "due_ns").unique("id", keep="first", maintain_order=True)
    if run.dir.world.kind == "sim" and not run.frame("lateness", "id").height:
        return released.select("id", delivered_ns="due_ns")
    late = run.frame("lateness", "id", "late_s").drop_nulls("late_s").unique("id", keep="first")
    arrival = pl.col("due_ns") + (pl.col("late_s") * 1e9).round().cast(pl.Int64)
    return released.join(late, on="id", maintain_order="left").select("id", delivered_ns=arrival)


def commit_lags(run: Run) -> pl.DataFrame:
    """id, cycle, lag_s: from the delivery of an update to the close of the cycle that took it."""
    both = run.members.select("cycle", "_t_ns", "id").join(run.derived(delivered), on="id", maintain_order="left")
    return both.select("id", "cycle", lag_s=(pl.col("_t_ns") - pl.col("delivered_ns")) / 1e9)


def release_lags(run: Run) -> pl.DataFrame:
    """id, cycle, lag_s: from the delivery of an update to its release."""
    both = run.frame("accepted", "_seq", "_t_ns", "id", "cycle").join(run.derived(delivered), on="id", maintain_order="left").sort("_seq")
    return both.select("id", "cycle", lag_s=(pl.col("_t_ns") - pl.col("delivered_ns")) / 1e9)
