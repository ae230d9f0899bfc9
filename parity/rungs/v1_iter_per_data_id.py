"""V1: a bin takes as many iterations."""

import polars as pl

from parity.evidence import Pair, Run, Window
from parity.measures.statistics import ks, mean
from parity.measures.tables import equal_rows
from parity.rung import DIST, LOGICAL, Finding, measured, rung

BIN = "bin {bin} (round {round}, data_id {data_id})"
"""How a bin is named."""


@rung(
    id="V1",
    name="iter_per_data_id",
    stage=6,
    tier=DIST,
    domain=LOGICAL,
    needs=["agg_round.data_id", "agg_round.committed"],
    upstream=["U5", "R1", "L1"],
    over="bins",
)
def iter_per_data_id(pair: Pair, window: Window) -> Finding:
    """The number of cycles that each bin took before it committed agrees.

    What it checks: closes per bin (round, data_id), over the bins that both runs completed.
    Why: this is the cadence of a data-bin algorithm; one iteration more or less shifts all that follows.
    Reads: agg_round.round, data_id, committed.
    Statistic: equality (exact); KS and relative difference of the means over aligned bins (fidelity).
    Tolerance: exact 0; fidelity: KS 0.2, mean 0.15.
    Known limits: a truncated last bin is left out; drift over the run is V1c's.
    """
    real, sim = (iterations(run, window) for run in pair.runs)
    if pair.exact:
        return equal_rows("bins", BIN, real, sim)
    one, two = real["closes"], sim["closes"]
    return measured(ks(one, two, 0.2, aligned=True), mean(one, two, 0.15, name="mean iterations", relative=True, aligned=True))


def iterations(run: Run, window: Window) -> pl.DataFrame:
    """bin, round, data_id, and the closes it took, of the completed bins of the window, in their order."""
    ordinal = pl.col("committed").cast(pl.Int64).cum_sum().shift(1, fill_value=0).alias("bin")
    rounds = window.in_bins(run, run.rounds).with_columns(ordinal)
    return rounds.group_by("bin", maintain_order=True).agg(pl.last("round"), pl.last("data_id"), closes=pl.len().cast(pl.Int64))
