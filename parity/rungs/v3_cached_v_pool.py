"""V3: the pool that the gate looks at is as large."""

from parity.evidence import Pair, Window
from parity.measures.statistics import ks
from parity.rung import DIAG, LOGICAL, Finding, rung

TOL = 0.2


@rung(
    id="V3",
    name="cached_v_pool",
    stage=6,
    tier=DIAG,
    domain=LOGICAL,
    needs=["agg_round.pool"],
    upstream=["V1"],
    over="cycles",
)
def cached_v_pool(pair: Pair, window: Window) -> Finding:
    """How many uploads the bin held at each close.

    What it checks: agg_round.pool over the cycles of the window.
    Why: V falls as the pool grows. Where V parts and the pool doesn't, it is the uploads that differ.
    Reads: agg_round.pool.
    Statistic: KS.
    Tolerance: none (DIAG); --strict enforces 0.2.
    Known limits: commits alone, where the pool becomes the model, are G2's.
    """
    real, sim = (window.in_cycles(run.rounds)["pool"] for run in pair.runs)
    found = ks(real, sim, TOL)
    largest = f"largest real {real.max()!r}, sim {sim.max()!r}"
    reason = f"KS {found.effect:.3f} (n={found.n}, critical {found.critical:.3f}); {largest}"
    return Finding(found.effect <= TOL, reason, effect=found.effect, tol=TOL, n=found.n)
