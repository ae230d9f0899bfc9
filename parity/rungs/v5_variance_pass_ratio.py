"""V5: the variance passes its gate as often."""

import polars as pl

from parity.evidence import Pair, Run, Window
from parity.measures.statistics import mean
from parity.measures.tables import equal_rows
from parity.rung import DIST, LOGICAL, Finding, measured, rung, skipped
from parity.rungs.v4_force_commit_rate import UNFORCED

KEEP = "keep"


@rung(
    id="V5",
    name="variance_pass_ratio",
    stage=6,
    tier=DIST,
    domain=LOGICAL,
    needs=["agg_round.reason", "agg_round.threshold"],
    upstream=["V1", "V2"],
    over="bins",
)
def variance_pass_ratio(pair: Pair, window: Window) -> Finding:
    """The share of closes at which the gate opened by itself agrees; forced commits are left out.

    What it checks: for each close of the completed bins that no cap or plateau forced, whether it committed.
    Why: a gate that lets more through in one world makes smaller pools and noisier steps there, and no number of
        accuracy says why.
    Reads: agg_round.reason, agg_round.threshold.
    Statistic: equality, close by close (exact); difference of the mean share per bin, over aligned bins (fidelity).
    Tolerance: exact 0; fidelity 0.05.
    Known limits: each bin weighs the same, however many closes it took. Bins with nothing but a forced commit say
        nothing and are left out.
    """
    real, sim = (window.in_bins(run, run.rounds) for run in pair.runs)
    if pair.exact:
        return equal_rows("closes", "cycle {cycle}", _passes(real), _passes(sim))
    both = _shares(pair.real, window).join(_shares(pair.sim, window), on="bin", suffix="_sim").sort("bin")
    if not both.height:
        return skipped("no bin was judged by the gate in both runs")
    return measured(mean(both["share"], both["share_sim"], 0.05, name="pass ratio", aligned=True))


def _judged(rounds: pl.DataFrame) -> pl.DataFrame:
    """The closes that the gate decided."""
    return rounds.filter(pl.col("reason").is_in([*UNFORCED, KEEP]))


def _passes(rounds: pl.DataFrame) -> pl.DataFrame:
    return _judged(rounds).select("cycle", passed=pl.col("reason") != KEEP)


def _shares(run: Run, window: Window) -> pl.DataFrame:
    """bin, share: of the closes of each bin, how many passed."""
    ordinal = pl.col("committed").cast(pl.Int64).cum_sum().shift(1, fill_value=0)
    rounds = _judged(window.in_bins(run, run.rounds.with_columns(bin=ordinal)))
    return rounds.group_by("bin").agg(share=(pl.col("reason") != KEEP).mean())
