"""G3: updates weigh as much."""

from parity.evidence import Pair, Window
from parity.measures.statistics import ks, mean
from parity.rung import DIST, LOGICAL, Finding, measured, rung
from parity.rungs.accepts import equal_by_id


@rung(
    id="G3",
    name="rate_weights",
    stage=7,
    tier=DIST,
    domain=LOGICAL,
    needs=["accepted.rate"],
    upstream=["U3", "L1"],
    over="cycles",
)
def rate_weights(pair: Pair, window: Window) -> Finding:
    """The weights of the updates that were taken agree, and so does the share that the align gate lowered.

    What it checks: accepted.rate, its parts and `gated` of each accepted update, by its assign id (exact), or as
        distributions (fidelity).
    Why: the weight is where staleness, utility and direction come together; a rule that is nearly inert in one
        world only would go unseen in the accuracies.
    Reads: accepted.rate, accepted.parts, accepted.gated.
    Statistic: equality (exact); KS of the weights and difference of the gated shares (fidelity).
    Tolerance: exact 0; fidelity: KS 0.2, gated share 0.05.
    Known limits: in the fidelity tier the parts are not compared one by one.
    """
    if pair.exact:
        return equal_by_id(pair, window, "weights", "rate", "parts", "gated")
    real, sim = (window.in_cycles(run.accepts("rate", "gated")) for run in pair.runs)
    weights = ks(real["rate"], sim["rate"], 0.2, name="KS of weights")
    if not real["gated"].any() and not sim["gated"].any():
        return measured(weights, reason="nothing was gated")
    return measured(weights, mean(real["gated"].cast(int), sim["gated"].cast(int), 0.05, name="gated share"))
