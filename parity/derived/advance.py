"""How far each run's own clock moves from one close to the next, and how slow the cycle's slowest member is.

The real clock is the wall since `ready`, the sim's is its virtual clock. Stamps are never looked at: in the
exact tier they are equal by design, and comparing them would compare a number with itself.
"""

import polars as pl

from parity.evidence import Run, Window


def advances(run: Run, window: Window) -> pl.DataFrame:
    """The common cycles of `run`, in order: cycle, advance_s, slowest_s. A cycle that lacks one of them is left out."""
    return window.in_cycles(run.derived(_advances))


def clock(run: Run) -> pl.Expr:
    """Seconds on the clock of `run`, at a close."""
    return pl.col(run.clock) / (1 if run.clock == "wall_s" else 1e9)


def _advances(run: Run) -> pl.DataFrame:
    at = clock(run)
    rounds = run.rounds.select("cycle", "cohort", advance_s=at - at.shift(1, fill_value=0.0))
    return rounds.select("cycle", "advance_s").join(_slowest(run), on="cycle", how="left", maintain_order="left").drop_nulls()


def _slowest(run: Run) -> pl.DataFrame:
    """The longest modelled duration among the members of each cycle, legs included."""
    delays = run.frame("dispatch", "id", "delay_ns").unique("id")
    joined = run.members.select("cycle", "id").join(delays, on="id", how="inner")
    return joined.group_by("cycle").agg(slowest_s=pl.col("delay_ns").max() / 1e9)
