"""C2: and lose as much."""

from parity.evidence import Pair, Window
from parity.rung import DIST, LOGICAL, Finding, rung
from parity.rungs.evaluations import compare_evaluations


@rung(
    id="C2",
    name="convergence_loss",
    stage=8,
    tier=DIST,
    domain=LOGICAL,
    needs=["agg_eval.loss", "agg_eval.version"],
    upstream=["F13", "K8", "L1"],
    over="bins",
)
def convergence_loss(pair: Pair, window: Window) -> Finding:
    """The evaluation loss agrees at every model version that both runs evaluated.

    What it checks: agg_eval.loss by version, over the commits of the window.
    Why: accuracy is flat long before the loss is; the loss sees smaller differences.
    Reads: agg_eval.loss, agg_eval.version.
    Statistic: equality (exact); mean absolute difference, its chance from block-wise swaps (fidelity).
    Tolerance: exact 0; fidelity 0.15.
    Known limits: as C1.
    """
    return compare_evaluations(pair, window, "loss", 0.15)
