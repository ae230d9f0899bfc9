"""U5: the members of a cycle come in the same order."""

from statistics import fmean

from scipy import stats

from parity.compare import equal
from parity.evidence import Pair, Run, Window
from parity.rung import DIST, LOGICAL, Finding, failed, passed, rung, skipped

TOL = 0.7


@rung(
    id="U5",
    name="inter_arrival_order",
    stage=5,
    tier=DIST,
    domain=LOGICAL,
    needs=["agg_round.cohort"],
    upstream=["K3", "S34"],
    over="cycles",
)
def inter_arrival_order(pair: Pair, window: Window) -> Finding:
    """Those who contributed to a cycle in both runs did so in the same order.

    What it checks: the positions, in each common cycle, of the trainers that are in it in both runs.
    Why: order is what staleness, carried surplus and the bits of a sum hang on; it parts before any of them does.
    Reads: agg_round.cohort.
    Statistic: equality of the orders (exact); Spearman's rank correlation per cycle, averaged over the cycles (fidelity).
    Tolerance: exact 0; fidelity >= 0.7.
    Known limits: who is in the cycle of one run only is left out; L1 looks at the sets. A cycle with fewer than two common
        members has no order. The average is a fact: no sampling.
    """
    real, sim = (_orders(run, window) for run in pair.runs)
    common = {cycle: _common(order, sim[cycle]) for cycle, order in real.items() if cycle in sim}
    ordered = {cycle: both for cycle, both in common.items() if len(both[0]) > 1}
    if not ordered:
        return skipped("no common cycle has two members in common")
    if pair.exact:
        return equal("cycles", *({f"cycle {cycle}": both[side] for cycle, both in ordered.items()} for side in (0, 1)))
    effect = fmean(_spearman(*both) for both in ordered.values())
    judge = passed if effect >= TOL else failed
    return judge(f"mean rank correlation {effect:.2f} over {len(ordered)} cycles", effect=effect, tol=TOL, n=len(ordered))


def _orders(run: Run, window: Window) -> dict[int, list[str]]:
    rows = window.in_cycles(run.rounds).select("cycle", "cohort").iter_rows()
    return {cycle: [member["trainer"] for member in cohort] for cycle, cohort in rows}


def _common(real: list[str], sim: list[str]) -> tuple[list[str], list[str]]:
    """The trainers of both, in the order of each."""
    return [node for node in real if node in sim], [node for node in sim if node in real]


def _spearman(real: list[str], sim: list[str]) -> float:
    return float(stats.spearmanr(range(len(real)), [sim.index(node) for node in real]).statistic)
