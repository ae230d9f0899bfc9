"""DK2: C takes the same course."""

from parity.evidence import Pair, Window
from parity.rung import DIST, LOGICAL, Finding, rung
from parity.rungs.in_force import compare_sizes


@rung(
    id="DK2",
    name="dynamic_c",
    stage=6,
    tier=DIST,
    domain=LOGICAL,
    needs=["agg_round.concurrency"],
    upstream=["V5"],
    over="cycles",
)
def dynamic_c(pair: Pair, window: Window) -> Finding:
    """The concurrency C that was in force agrees, cycle by cycle.

    What it checks: agg_round.concurrency of each cycle of the window.
    Why: C bounds what is in flight, and so staleness and the order of arrivals.
    Reads: agg_round.concurrency.
    Statistic: equality (exact); KS over the cycles, and equality where C is constant in both runs (fidelity).
    Tolerance: exact 0; fidelity 0.2, and 0 for constants.
    Known limits: C is a bound. How many really were in flight is S34's.
    """
    return compare_sizes(pair, window, "concurrency", "C")
