"""S1: the same trainers are chosen."""

from statistics import fmean

import polars as pl

from parity.derived.pools import selections
from parity.evidence import Pair, Window
from parity.measures.tables import equal_rows, in_order
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
    real, sim = (in_order(selections(run, window, "chosen", "eligible", "eligible_fp", "policy")) for run in pair.runs)
    if not real.height or not sim.height:
        return skipped("one run has no selection in the common cycles")
    if pair.exact:
        sets = (side.select("number", pl.col("chosen").list.sort()) for side in (real, sim))
        return equal_rows("selections", "selection {number}", *sets)
    overlaps = jaccard(real["chosen"], sim["chosen"])
    effect, n = fmean(overlaps), overlaps.len()
    text = f"mean Jaccard {effect:.2f} over {n} selections"
    settled = pl.col("policy").is_in(BY_POOL) | (pl.col("chosen").list.len() == pl.col("eligible"))
    if not all(side.select(settled.all()).item() for side in (real, sim)):
        return Finding(None, f"{text} (`{real['policy'][0]}` draws: not enforced)", effect=effect, n=n)
    one_pool = real["eligible_fp"][:n] == sim["eligible_fp"][:n]
    alike = overlaps.filter(one_pool)
    if not alike.len():
        return Finding(None, f"{text}, no two from one pool (not enforced, arrivals decide)", effect=effect, n=n)
    effect = fmean(alike)
    judge = passed if effect >= TOL else failed
    return judge(f"mean Jaccard {effect:.2f} over {alike.len()} of {n} selections, from one pool", effect=effect, tol=TOL, n=n)


def jaccard(real: pl.Series, sim: pl.Series) -> pl.Series:
    """The overlap of both sets, place by place as far as both go; of two empty ones it is whole."""
    n = min(real.len(), sim.len())
    both = pl.DataFrame({"real": real[:n], "sim": sim[:n]}).select(
        common=pl.col("real").list.set_intersection("sim").list.len(), all=pl.col("real").list.set_union("sim").list.len()
    )
    return both.select(overlap=pl.when(pl.col("all") > 0).then(pl.col("common") / pl.col("all")).otherwise(1.0))["overlap"]
