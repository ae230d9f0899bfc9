"""K9: whether a run ended by its budget, or by a cap long before."""

from parity.evidence import AT_A_BOUND, Pair, Run, Window
from parity.rung import DIAG, PHYSICAL, Finding, rung

REACHED = 0.85
CAPS = ("cycles", "commits", "accepts")


@rung(id="K9", name="budget_not_cap", stage=9, tier=DIAG, domain=PHYSICAL, needs=["verdict.verdict"])
def budget_not_cap(pair: Pair, window: Window) -> Finding:
    """Whether a run that has a budget of stamp time was ended by a cap of counts long before it.

    What it checks: of each run that completed and has `stop.runtime_s`, the share of it that was spent; and which of
        the caps (cycles, commits, accepts) was reached.
    Why: a figure over time that a cap cut short looks like one of a finished run.
    Reads: verdict.json, the stop rules of the condition.
    Statistic: the smallest share of the budget that was spent.
    Tolerance: none (DIAG); --strict enforces 0.85.
    Known limits: without a budget of time the caps are the budget, and nothing is cut short.
    """
    budget = pair.condition.stop.runtime_s
    if budget is None:
        return Finding(True, "no budget of stamp time: its caps are its budget", n=len(pair.runs))
    capped = {run.side: share for run in pair.runs if (share := _share_at_cap(run, budget)) is not None}
    if not capped:
        return Finding(True, f"no cap was reached before the budget of {budget:g} s", effect=1.0, n=len(pair.runs))
    side = min(capped, key=lambda side: capped[side])
    reason = f"{side}: a cap ended it after {capped[side]:.0%} of its budget of {budget:g} s"
    return Finding(capped[side] >= REACHED, reason, effect=capped[side], tol=REACHED, n=len(pair.runs))


def _share_at_cap(run: Run, budget: float) -> float | None:
    """The share of its budget that a run had spent when a cap ended it; None when none did."""
    verdict, stop = run.verdict, run.condition.stop
    if verdict is None or verdict.verdict not in AT_A_BOUND:
        return None
    caps = {name: cap for name in CAPS if (cap := getattr(stop, name)) is not None}
    reached = any((getattr(verdict, name) or 0) >= cap for name, cap in caps.items())
    return verdict.virtual_s / budget if reached else None
