"""V2b: whether the variances part by a factor, or more and more."""

import numpy as np
import polars as pl

from parity.evidence import Pair, Window
from parity.measures.drift import PER, log_ratio, slope
from parity.rung import DIAG, LOGICAL, Finding, rung, skipped

OFFSET, SLOPE = 0.02, 0.05
"""log(real / sim) from which on it is called an offset, and its slope per 100 cycles from which on it grows."""


@rung(
    id="V2b",
    name="var_drift",
    stage=6,
    tier=DIAG,
    domain=LOGICAL,
    needs=["agg_round.variance"],
    upstream=["V2"],
    over="cycles",
)
def var_drift(pair: Pair, window: Window) -> Finding:
    """Where the variances V differ, whether by a constant factor or more and more.

    What it checks: log(real / sim) of V, cycle by cycle of the window.
    Why: an offset is another pool or another sum; a growing difference is rounding, or a model that goes astray.
    Reads: agg_round.variance.
    Statistic: the mean of the log ratio, and its slope per 100 cycles.
    Tolerance: none (DIAG); --strict enforces 0.02 and 0.05.
    Known limits: cycles are aligned by their index; once the cadence has parted (V1) the ratio compares
        different pools.
    """
    real, sim = (window.in_cycles(run.rounds).select("cycle", "variance").drop_nulls() for run in pair.runs)
    both = real.join(sim.select("cycle", other="variance"), on="cycle", maintain_order="left")
    both = both.filter((pl.col("variance") > 0) & (pl.col("other") > 0))
    if not both.height:
        return skipped("no cycle of the window has a variance over 0 in both runs")
    ratio = log_ratio(both["variance"], both["other"])
    offset, growth = float(np.mean(ratio)), slope(ratio)
    label = "growing" if abs(growth) > SLOPE else "offset" if abs(offset) > OFFSET else "none"
    reason = f"{label}: log ratio {offset:+.4f} in the mean, {growth:+.4f} per {PER} cycles"
    return Finding(label == "none", reason, effect=abs(offset), tol=OFFSET, n=both.height)
