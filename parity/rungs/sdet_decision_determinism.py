"""Sdet: equal pools give equal decisions."""

from typing import Any

from parity.evidence import Pair, Run, Window
from parity.pools import selections
from parity.rung import DIST, LOGICAL, Finding, failed, passed, rung, skipped

BY_POOL = ("all",)
"""Policies whose choice is a function of the set to choose from, and of nothing else."""


@rung(
    id="Sdet",
    name="decision_determinism",
    stage=3,
    tier=DIST,
    domain=LOGICAL,
    needs=["selection.eligible_fp", "selection.chosen", "selection.policy"],
    upstream=["A2"],
    over="cycles",
)
def decision_determinism(pair: Pair, window: Window) -> Finding:
    """Where the pool has the same fingerprint, the same trainers are chosen; otherwise the first difference is named.

    What it checks: selection by selection, the fingerprint of the pool and who was chosen from it. INPUT DIVERGENCE: the pools
        parted first, so look at availability, at the ledger, or at an earlier decision. DESYNC: one pool, two choices, so look
        at the selector's own state and draws.
    Why: a draw that hangs on how many were made before it is out of step for the rest of the run after one extra choice.
    Reads: selection.eligible_fp, chosen, policy.
    Statistic: exact: number of selections whose pool or choice differs. Fidelity: share of DESYNC among selections of one
        pool.
    Tolerance: 0.
    Known limits: in the fidelity tier a policy that draws from the pool in its order, or looks at utilities, may choose
        differently from one set; there the number is shown without a verdict.
    """
    real, sim = (_decisions(run, window) for run in pair.runs)
    if not real or not sim:
        return skipped("one run has no selection in the common cycles")
    both = list(zip(real, sim, strict=False))
    wrong = [(number, _parted(one, two)) for number, (one, two) in enumerate(both) if _parted(one, two)]
    desynced = [number for number, what in wrong if what == "DESYNC"]
    first = f"; first at selection {wrong[0][0]} (cycle {both[wrong[0][0]][0]['cycle']}): {wrong[0][1]}" if wrong else ""
    text = f"{len(both)} selections, {len(wrong) - len(desynced)} from other pools, {len(desynced)} choose otherwise from one pool{first}"
    shown = [f"real {one['chosen']}   sim {two['chosen']}" for one, two in (both[number] for number, _ in wrong[:3])]
    if pair.exact:
        return failed(text, effect=len(wrong) / len(both), tol=0.0, n=len(both), detail=shown) if wrong else _held(text, len(both))
    if not all(row["policy"] in BY_POOL for row in real):
        return Finding(None, f"{text} (`{real[0]['policy']}` looks at more than the set)", effect=len(desynced) / len(both), n=len(both))
    return failed(text, effect=len(desynced) / len(both), tol=0.0, n=len(both), detail=shown) if desynced else _held(text, len(both))


def _held(text: str, n: int) -> Finding:
    return passed(text, effect=0.0, tol=0.0, n=n)


def _decisions(run: Run, window: Window) -> list[dict[str, Any]]:
    return selections(run, window).select("cycle", "eligible_fp", "chosen", "policy").to_dicts()


def _parted(real: dict[str, Any], sim: dict[str, Any]) -> str | None:
    """Which of the two, and None for neither. Another number wanted isn't another decision."""
    if real["eligible_fp"] != sim["eligible_fp"]:
        return "INPUT DIVERGENCE"
    same_want = len(real["chosen"]) == len(sim["chosen"])
    return "DESYNC" if real["chosen"] != sim["chosen"] and same_want else None
