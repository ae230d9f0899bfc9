"""G1: the steps of the model are as long."""

import polars as pl

from parity.evidence import Pair, Run, Window
from parity.measures.statistics import ks
from parity.measures.tables import equal_rows
from parity.rung import DIST, LOGICAL, Finding, measured, rung, skipped


@rung(
    id="G1",
    name="grad_norm",
    stage=7,
    tier=DIST,
    domain=LOGICAL,
    needs=["agg_round.grad_norm"],
    upstream=["S34", "L1"],
    over="bins",
)
def grad_norm(pair: Pair, window: Window) -> Finding:
    """The norm of the aggregate G of each commit agrees.

    What it checks: agg_round.grad_norm of the commits of the window.
    Why: of a forward gradient most is noise, and its norm says how much was averaged away.
    Reads: agg_round.grad_norm, agg_round.committed.
    Statistic: equality, to the last bit (exact); KS over the commits (fidelity).
    Tolerance: exact 0; fidelity 0.2.
    Known limits: the norm before the server's optimizer, which scales it.
    """
    real, sim = (_norms(run, window) for run in pair.runs)
    if pair.exact:
        return equal_rows("commits", "commit of cycle {cycle}", real, sim)
    if not real.height or not sim.height:
        return skipped("no commit of the window has a norm in one run")
    return measured(ks(real["grad_norm"], sim["grad_norm"], 0.2))


def _norms(run: Run, window: Window) -> pl.DataFrame:
    return window.in_bins(run, run.rounds).filter(pl.col("committed")).select("cycle", "grad_norm").drop_nulls()
