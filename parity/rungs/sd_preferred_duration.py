"""Sd: the penalty for slow devices binds as often."""

import polars as pl

from parity.evidence import Pair, Run, Window
from parity.measures.compare import equal
from parity.measures.statistics import mean
from parity.rung import DIST, LOGICAL, Finding, measured, rung, skipped
from parity.rungs.sx_selector_score import scores

TOL = 0.2


@rung(id="Sd", name="preferred_duration", stage=3, tier=DIST, domain=LOGICAL, needs=["selection.scores"], upstream=["A2b"], over="cycles")
def preferred_duration(pair: Pair, window: Window) -> Finding:
    """The share of selections in which somebody was chosen in spite of being slower than preferred agrees.

    What it checks: whether the system penalty of anybody who was chosen is below 1, selection by selection.
    Why: the preferred duration is set by a pacer that follows utilities; one that runs away chooses among all, or among
        the fast alone, long before any utility looks odd.
    Reads: selection.scores.penalty.
    Statistic: equality of the number of those penalised (exact); difference of the shares of selections (fidelity).
    Tolerance: exact 0; fidelity 0.2.
    Known limits: who was left out because of the penalty isn't seen. A policy that scores nobody has no penalty: SKIP.
    """
    real, sim = (_penalised(run, window) for run in pair.runs)
    if not real or not sim:
        return skipped("one run has no score in the common cycles")
    if pair.exact:
        return equal("selections", real, sim)
    one, two = ([count > 0 for count in side.values()] for side in (real, sim))
    return measured(mean(one, two, TOL, name="share of selections that penalise"))


def _penalised(run: Run, window: Window) -> dict[str, int]:
    """Selection -> how many of those scored have a penalty."""
    binds = (pl.col("penalty") < 1).sum().cast(pl.Int64)
    counts = scores(run, window).group_by("selection").agg(binds).sort("selection")
    return {f"selection {number}": count for number, count in counts.iter_rows()}
