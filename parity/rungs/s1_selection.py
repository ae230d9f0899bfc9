"""S1: the same trainers are chosen."""

from statistics import fmean
from typing import Any

from parity.compare import equal
from parity.evidence import Pair, Run, Window
from parity.pools import selections
from parity.rung import DIST, LOGICAL, Finding, failed, passed, rung, skipped
from parity.rungs.sdet_decision_determinism import BY_POOL

TOL = 0.7


@rung(
    id="S1",
    name="selection",
    stage=3,
    tier=DIST,
    domain=LOGICAL,
    needs=["selection.chosen", "selection.eligible", "selection.eligible_fp", "selection.policy"],
    upstream=["Sdet"],
    over="cycles",
)
def selection(pair: Pair, window: Window) -> Finding:
    """The sets that were chosen overlap, selection by selection.

    What it checks: the chosen set of each selection of the common cycles.
    Why: it is the first thing that a user looks at, and the last that may differ without a reason further down.
    Reads: selection.chosen, eligible, eligible_fp, policy.
    Statistic: equality of the sets (exact); their mean Jaccard index over the selections from one pool (fidelity).
    Tolerance: exact 0; fidelity >= 0.7, where the policy chooses by the set alone or the whole pool was chosen.
    Known limits: in the fidelity tier a policy that draws has no reason to draw the same; there it is a number without a
        verdict. So it is of pools that differ, which arrivals decide: A2 and A2b compare them.
    """
    real, sim = (_choices(run, window) for run in pair.runs)
    if not real or not sim:
        return skipped("one run has no selection in the common cycles")
    if pair.exact:
        return equal(
            "selections", *({f"selection {place}": sorted(row["chosen"]) for place, row in enumerate(side)} for side in (real, sim))
        )
    both = list(zip(real, sim, strict=False))
    overlaps = [_jaccard(set(one["chosen"]), set(two["chosen"])) for one, two in both]
    effect, n = fmean(overlaps), len(overlaps)
    text = f"mean Jaccard {effect:.2f} over {n} selections"
    if not all(row["policy"] in BY_POOL or len(row["chosen"]) == row["eligible"] for row in (*real, *sim)):
        return Finding(None, f"{text} (`{real[0]['policy']}` draws: not enforced)", effect=effect, n=n)
    alike = [overlap for overlap, (one, two) in zip(overlaps, both, strict=True) if one["eligible_fp"] == two["eligible_fp"]]
    if not alike:
        return Finding(None, f"{text}, no two from one pool (not enforced, arrivals decide)", effect=effect, n=n)
    judge = passed if fmean(alike) >= TOL else failed
    return judge(f"mean Jaccard {fmean(alike):.2f} over {len(alike)} of {n} selections, from one pool", effect=fmean(alike), tol=TOL, n=n)


def _choices(run: Run, window: Window) -> list[dict[str, Any]]:
    return selections(run, window).select("chosen", "eligible", "eligible_fp", "policy").to_dicts()


def _jaccard(one: set[str], two: set[str]) -> float:
    return len(one & two) / len(one | two) if one | two else 1.0
