"""V2: the gate's variance takes the same course."""

from parity.evidence import Pair, Window
from parity.measures.statistics import ks, mean
from parity.measures.tables import equal_rows
from parity.rung import DIST, LOGICAL, Finding, measured, rung, skipped


@rung(
    id="V2",
    name="var_trajectory",
    stage=6,
    tier=DIST,
    domain=LOGICAL,
    needs=["agg_round.variance"],
    upstream=["V1"],
    over="cycles",
)
def var_trajectory(pair: Pair, window: Window) -> Finding:
    """The variance V of the pooled uploads at each close agrees.

    What it checks: agg_round.variance, cycle by cycle (exact) or as a distribution over the completed bins.
    Why: V is what the gate decides by; it is also the first number in which a difference of the arithmetic,
        rather than of the order, shows.
    Reads: agg_round.variance.
    Statistic: equality, to the last bit (exact); KS and difference of the means (fidelity).
    Tolerance: exact 0; fidelity: KS 0.2, mean 0.02.
    Known limits: V is undefined, and left out, for a pool of one. 0.02 is absolute: it means little where
        the threshold is itself of that size.
    """
    if pair.exact:
        return equal_rows("cycles", "cycle {cycle}", *(window.in_cycles(run.rounds).select("cycle", "variance") for run in pair.runs))
    one, two = (window.in_bins(run, run.rounds)["variance"].drop_nulls() for run in pair.runs)
    if not one.len() or not two.len():
        return skipped("no variance is defined in the completed bins of one run")
    return measured(ks(one, two, 0.2), mean(one, two, 0.02, name="mean V"))
