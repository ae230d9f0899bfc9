"""C1: both learn as much."""

from parity.evidence import Pair, Window
from parity.rung import DIST, LOGICAL, Finding, rung
from parity.rungs.evaluations import compare_evaluations


@rung(
    id="C1",
    name="convergence",
    stage=8,
    tier=DIST,
    domain=LOGICAL,
    needs=["agg_eval.accuracy", "agg_eval.version"],
    upstream=["F13", "K8", "L1"],
    over="bins",
)
def convergence(pair: Pair, window: Window) -> Finding:
    """Accuracy agrees at every model version that both runs evaluated.

    What it checks: agg_eval.accuracy by version, over the commits of the window.
    Why: what a user reads off a simulation in the end.
    Reads: agg_eval.accuracy, agg_eval.version.
    Statistic: equality (exact); mean absolute difference, its chance from block-wise swaps (fidelity).
    Tolerance: exact 0; fidelity 0.05.
    Known limits: runs below 7200 s say little about convergence, and the report says so.
    """
    return compare_evaluations(pair, window, "accuracy", 0.05)
