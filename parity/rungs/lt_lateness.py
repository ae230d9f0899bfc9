"""Lt: in the real run updates arrive when they are due."""

import numpy as np
import polars as pl
from numpy.typing import NDArray

from parity.evidence import Pair, Run, Window
from parity.measures.statistics import ALPHA, quantile_share
from parity.rung import DIST, PHYSICAL, Finding, failed, passed, rung, skipped

TOL_S = 0.25
SHARE = 0.01


@rung(id="Lt", name="lateness", stage=1, tier=DIST, domain=PHYSICAL, needs=["real:lateness.late_s"], reads=["fault"], alone=True)
def lateness(pair: Pair, window: Window) -> Finding:
    """Arrival minus due in the real run: the 99th percentile is at most 0.25 s, and none is beyond the grace.

    What it checks: how late updates reach the aggregator, against their due.
    Why: the exact tier holds the real run to the modelled order, and lateness is what that costs. Large
        lateness means that the machine can't keep up with the delays that were asked for.
    Reads: lateness.late_s of the real run, its faults, and limits.grace_s of its condition.
    Statistic: the 99th percentile; where more than 1 % are late, the binomial chance of so many.
    Tolerance: 0.25 s (meant for a broker on loopback); share beyond the grace 0.
    Known limits: updates that waited for a respawn or a broker's return are late for that and say nothing of
        the machine: they are left out, and counted in the report. A single late update among a few dozen is
        within the chance of 1 %, and is SKIP.
    """
    grace = pair.real.condition.limits.grace_s
    late, excused = _late(pair.real, grace)
    n, told = late.size, _faults(pair.real)
    if n == 0:
        return skipped(f"all {excused} updates waited for a fault that was dealt with{told}", n=0)
    p99 = float(np.quantile(late, 1 - SHARE, method="inverted_cdf"))
    left_out = f", {excused} left out that waited for a fault" if excused else ""
    text = f"p99 {p99:.3f} s, mean {late.mean():.3f} s, largest {late.max():.3f} s{left_out}{told}"
    beyond = int((late > grace).sum())
    if beyond:
        return failed(f"{beyond} of {n} updates beyond the grace of {grace:g} s; {text}", effect=p99, tol=TOL_S, n=n)
    over, chance = quantile_share(late, TOL_S, SHARE)
    if p99 <= TOL_S:
        return passed(text, effect=p99, tol=TOL_S, n=n)
    if chance > ALPHA:
        return skipped(f"n={n}: {over} over {TOL_S} s is within the chance of {SHARE:.0%} (p {chance:.2f}); {text}", n=n)
    return failed(f"{over} of {n} updates over {TOL_S} s; {text}", effect=p99, tol=TOL_S, n=n)


def _late(run: Run, grace: float) -> tuple[NDArray[np.float64], int]:
    """Lateness of the updates that waited for no fault, in seconds, and how many did.

    An update waited for a fault when one was dealt with (a worker started again, a connection renewed) between a
    grace before its due, since silence is found that late, and its release.
    """
    frame = run.frame("lateness", "late_s", "held_s", "_t_ns").drop_nulls("late_s")
    late, released = frame["late_s"].to_numpy(), frame["_t_ns"].to_numpy() / 1e9
    held = np.nan_to_num(frame["held_s"].cast(pl.Float64).fill_null(0.0).to_numpy())
    due = released - held - late
    faults = run.frame("fault").filter(pl.col("what").is_in(["respawn", "reconnected"]))["_t_ns"].to_numpy() / 1e9
    between = (faults[None, :] >= due[:, None] - grace) & (faults[None, :] <= released[:, None])
    waited = between.any(axis=1) & (late > TOL_S)
    return late[~waited], int(waited.sum())


def _faults(run: Run) -> str:
    """What went wrong in the run and was dealt with."""
    counts = run.frame("fault")["what"].value_counts().sort("what")
    told = ", ".join(f"{what} {count}" for what, count in counts.iter_rows())
    return f"; faults that were dealt with: {told}" if told else ""
