"""F13: trainers report the same utility."""

from parity.evidence import Pair, Window
from parity.measures.statistics import ks
from parity.rung import DIST, LOGICAL, Finding, measured, rung
from parity.rungs.accepts import equal_by_id


@rung(
    id="F13",
    name="utility",
    stage=7,
    tier=DIST,
    domain=LOGICAL,
    needs=["accepted.utility"],
    upstream=["S2", "U3", "L1"],
    over="cycles",
)
def utility(pair: Pair, window: Window) -> Finding:
    """The statistical utility of the updates that were taken agrees.

    What it checks: accepted.utility of each accepted update, by its assign id, which is by trainer and by step
        (exact), or pooled over all trainers (fidelity).
    Why: selectors and rates of the Oort family live on it; it is also the first sight of what was learnt where.
    Reads: accepted.utility.
    Statistic: equality (exact); KS of the pooled values (fidelity).
    Tolerance: exact 0; fidelity 0.2.
    Known limits: in the fidelity tier models part with the first race, so no trainer's course is compared alone.
    """
    if pair.exact:
        return equal_by_id(pair, window, "accepted updates", "utility")
    real, sim = (window.in_cycles(run.accepts("utility"))["utility"] for run in pair.runs)
    return measured(ks(real, sim, 0.2))
