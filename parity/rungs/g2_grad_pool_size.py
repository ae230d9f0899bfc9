"""G2: as many uploads make a commit."""

import polars as pl

from parity.evidence import Pair, Run, Window
from parity.measures.statistics import ks, mean
from parity.measures.tables import equal_rows, in_order
from parity.rung import DIST, LOGICAL, Finding, measured, rung


@rung(
    id="G2",
    name="grad_pool_size",
    stage=7,
    tier=DIST,
    domain=LOGICAL,
    needs=["agg_round.pool", "agg_round.committed"],
    upstream=["V1", "DK1"],
    over="bins",
)
def grad_pool_size(pair: Pair, window: Window) -> Finding:
    """The number of uploads that each commit averaged agrees.

    What it checks: agg_round.pool of the cycles that committed, over the bins that both runs completed.
    Why: the variance of a step falls with the size of its pool; it is K times the iterations, and says so only
        while nothing is lost or counted twice.
    Reads: agg_round.pool, agg_round.committed.
    Statistic: equality, bin by bin (exact); KS and relative difference of the means over aligned bins (fidelity).
    Tolerance: exact 0; fidelity: KS 0.2, mean 0.15.
    Known limits: closes that kept the bin going are V3's.
    """
    real, sim = (_pools(run, window) for run in pair.runs)
    if pair.exact:
        return equal_rows("commits", "commit of bin {number}", in_order(real.to_frame()), in_order(sim.to_frame()))
    return measured(ks(real, sim, 0.2, aligned=True), mean(real, sim, 0.15, name="mean pool", relative=True, aligned=True))


def _pools(run: Run, window: Window) -> pl.Series:
    return window.in_bins(run, run.rounds).filter(pl.col("committed"))["pool"]
