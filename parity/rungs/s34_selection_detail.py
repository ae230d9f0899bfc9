"""S34: the same trainers are chosen, from the same pool, with as many in flight."""

from parity.derived.pools import selections
from parity.derived.sizes import over_concurrency
from parity.evidence import Pair, Window
from parity.measures.statistics import mean
from parity.measures.tables import equal_rows, in_order
from parity.rung import DIST, LOGICAL, Finding, failed, measured, rung

COLUMNS = ("chosen", "eligible", "candidates", "in_flight", "pending", "concurrency", "goal", "policy", "eligible_fp")


@rung(
    id="S34",
    name="selection_detail",
    stage=3,
    tier=DIST,
    domain=LOGICAL,
    needs=["selection.chosen", "selection.in_flight", "dispatch.in_flight"],
    upstream=["A2"],
    over="cycles",
)
def selection_detail(pair: Pair, window: Window) -> Finding:
    """How many are chosen and in flight agrees, and nobody is dispatched over the concurrency C.

    What it checks: in each run, slots held at each dispatch are at most the C in force in its cycle. Between the
        runs, in the exact tier: each selection has the same chosen list, pool, fingerprint, slots, K and C. In the fidelity tier:
        the mean number chosen and the mean number in flight.
    Why: selection is the first decision of a cycle. If it parts, everything after it does.
    Reads: selection.*, dispatch.in_flight.
    Statistic: equality (exact); relative difference of the two means, block permutation (fidelity).
    Tolerance: exact 0; fidelity: chosen 0.05, in flight 0.15. Over C: 0 in both.
    Known limits: in flight is sampled at selections, not over time (Sr does that).
    """
    over = [f"{run.side} {fault}" for run in pair.runs for fault in over_concurrency(run)]
    if over:
        return failed(f"{len(over)} dispatches over C: {over[0]}", effect=float(len(over)), tol=0.0, detail=over[:5])
    real, sim = (selections(run, window, *COLUMNS) for run in pair.runs)
    if pair.exact:
        return equal_rows("selections", "selection {number} (cycle {cycle})", in_order(real), in_order(sim))
    return measured(
        mean(real["chosen"].list.len(), sim["chosen"].list.len(), 0.05, name="mean chosen", relative=True),
        mean(real["in_flight"], sim["in_flight"], 0.15, name="mean in flight", relative=True),
    )
