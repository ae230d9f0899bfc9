"""Wd: how far the real run is behind its own stamps."""

from statistics import fmean

import numpy as np

from parity.evidence import Pair, Window
from parity.exhibits import Samples
from parity.rung import DIAG, PHYSICAL, Finding, rung, skipped


@rung(
    id="Wd",
    name="wall_disparity",
    stage=1,
    tier=DIAG,
    domain=PHYSICAL,
    needs=["real:agg_round.lag_s"],
    upstream=["K2"],
    over="cycles",
)
def wall_disparity(pair: Pair, window: Window) -> Finding:
    """The lag of the real run, wall minus frontier, at each close: its mean and its largest.

    What it checks: nothing; it shows what holding the real run to the modelled order costs.
    Why: the frontier never leads the wall, so a lag that stays small is jitter, and one that grows says that the
        machine can't keep up with the delays that were asked for.
    Reads: agg_round.lag_s of the real run.
    Statistic: mean and maximum; how much the second half of the window lags more than the first.
    Tolerance: none (DIAG).
    Known limits: in the fidelity tier stamps are arrivals, and the lag is the time of one step.
    """
    lags = window.in_cycles(pair.real.rounds)["lag_s"].drop_nulls().to_list()
    if not lags:
        return skipped("real has no lag in the common cycles")
    exhibit = Samples(np.array(lags), np.empty(0), aligned=True)
    half = len(lags) // 2
    growth = f", in the second half {fmean(lags[half:]) - fmean(lags[:half]):+.3f} s" if half else ""
    return Finding(None, f"mean {fmean(lags):.3f} s, largest {max(lags):.3f} s{growth}", effect=fmean(lags), n=len(lags), exhibit=exhibit)
