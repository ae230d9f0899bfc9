"""DK1: K takes the same course."""

from parity.evidence import Pair, Window
from parity.rung import DIST, LOGICAL, Finding, rung
from parity.rungs.in_force import compare_sizes


@rung(
    id="DK1",
    name="agg_goal_trajectory",
    stage=6,
    tier=DIST,
    domain=LOGICAL,
    needs=["agg_round.goal"],
    upstream=["V5"],
    over="cycles",
)
def agg_goal_trajectory(pair: Pair, window: Window) -> Finding:
    """The aggregation goal K that was in force agrees, cycle by cycle.

    What it checks: agg_round.goal of each cycle of the window.
    Why: a K that follows the variance turns a small difference of V into cycles of another size, and all that
        hangs on them. A K that is constant and unequal is another condition.
    Reads: agg_round.goal.
    Statistic: equality (exact); KS over the cycles, and equality where K is constant in both runs (fidelity).
    Tolerance: exact 0; fidelity 0.2, and 0 for constants.
    Known limits: that a cycle has one K, which its condition allows, is an invariant of each run (`sizes`).
    """
    return compare_sizes(pair, window, "goal", "K")
