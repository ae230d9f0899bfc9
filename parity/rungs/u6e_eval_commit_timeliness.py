"""U6e: evaluations hold the run up no longer than updates do."""

import numpy as np
import polars as pl
from numpy.typing import NDArray

from parity.evidence import Pair, Run, Window
from parity.measures.statistics import mean
from parity.rung import DIST, PHYSICAL, Finding, failed, measured, passed, rung

TOL_S = 2.0


@rung(
    id="U6e",
    name="eval_commit_timeliness",
    stage=6,
    tier=DIST,
    domain=PHYSICAL,
    needs=["real:agg_eval.stamp_ns", "real:accepted.interval_ns"],
    upstream=["U6"],
    alone=True,
)
def eval_commit_timeliness(pair: Pair, window: Window) -> Finding:
    """In the real run an evaluation is released as soon after its stamp as an update is after its own.

    What it checks: wall at the release less stamp, of the evaluations and of the training updates of the real run.
        In the sim both are 0 by construction.
    Why: nothing later is released before an evaluation has arrived. One that takes longer than it is charged
        (`eval.seconds`) delays every row behind it, and the sim doesn't know.
    Reads: agg_eval.stamp_ns, accepted.interval_ns and the clock of both, of the real run.
    Statistic: difference of the mean lags. Where each single evaluation is within the tolerance, or each is
        later than every update by more, nothing is left to chance; otherwise block permutation.
    Tolerance: 2 s.
    Known limits: updates that waited behind a slow evaluation are late themselves, and make the difference
        smaller; K2 and Wd see what is lost altogether.
    """
    evals, updates = _lags(pair.real, "agg_eval", pl.col("stamp_ns")), _lags(pair.real, "accepted", pl.col("interval_ns").list.last())
    usual, largest = float(updates.mean()), float(evals.max())
    if largest - usual <= TOL_S:
        apart = max(float(evals.mean()) - usual, 0.0)
        return passed(f"largest eval lag {largest:.3f} s, mean train lag {usual:.3f} s", effect=apart, tol=TOL_S, n=evals.size)
    smallest, latest = float(evals.min()), float(updates.max())
    if smallest - latest > TOL_S:
        apart = float(evals.mean()) - usual
        return failed(f"smallest eval lag {smallest:.3f} s, largest train lag {latest:.3f} s", effect=apart, tol=TOL_S, n=evals.size)
    return measured(mean(evals, updates, TOL_S, name="eval lag less train lag"))


def _lags(run: Run, kind: str, stamp: pl.Expr) -> NDArray[np.float64]:
    """Seconds from stamp to release of each record of `kind`."""
    told = run.frame(kind, "_seq", "_t_ns", *stamp.meta.root_names()).sort("_seq")
    return told.select(lag=(pl.col("_t_ns") - stamp) / 1e9)["lag"].drop_nulls().to_numpy()
