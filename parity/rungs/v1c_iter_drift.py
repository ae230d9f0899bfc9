"""V1c: the number of iterations a bin takes doesn't part slowly."""

import polars as pl

from parity.evidence import Pair, Window
from parity.measures.drift import drift
from parity.measures.tables import equal_rows
from parity.rung import DIST, LOGICAL, Finding, measured, rung
from parity.rungs.v1_iter_per_data_id import BIN, iterations


@rung(
    id="V1c",
    name="iter_drift",
    stage=6,
    tier=DIST,
    domain=LOGICAL,
    needs=["agg_round.data_id", "agg_round.committed"],
    upstream=["V1"],
    over="bins",
)
def iter_drift(pair: Pair, window: Window) -> Finding:
    """The ratio of the iterations that real and sim take for a bin has no slope over the run.

    What it checks: log(real / sim) of the closes per bin, over the bins that both completed; in the exact tier
        the closes up to and including each bin, which is where a drift would add up.
    Why: means of a whole run can agree while the two slowly part; the longer run then has another result.
    Reads: agg_round.round, data_id, committed.
    Statistic: equality (exact); the slope per 100 bins, its chance from permuted blocks of bins (fidelity).
    Tolerance: exact 0; fidelity 0.05 per 100 bins, and beyond the critical value.
    Known limits: below 10 bins a slope says nothing, and it says how many it needs.
    """
    real, sim = (iterations(run, window) for run in pair.runs)
    if pair.exact:
        return equal_rows("bins", BIN, *(counts.with_columns(pl.col("closes").cum_sum()) for counts in (real, sim)))
    return measured(drift(real["closes"], sim["closes"], 0.05, name="slope per 100 bins"))
