"""Sdet: equal pools give equal decisions."""

import polars as pl

from parity.derived.pools import selections
from parity.evidence import Pair, Window
from parity.measures.tables import in_order
from parity.rung import DIST, LOGICAL, Finding, failed, passed, rung, skipped

BY_POOL = ("all",)
"""Policies whose choice is a function of the set to choose from, and of nothing else."""
DESYNC = "DESYNC"


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
    real, sim = (in_order(selections(run, window, "eligible_fp", "chosen", "policy")) for run in pair.runs)
    n = min(real.height, sim.height)
    if not n:
        return skipped("one run has no selection in the common cycles")
    wrong = parted(real, sim)
    desynced = wrong.filter(pl.col("parted") == DESYNC).height
    first = "; first at selection {number} (cycle {cycle}): {parted}".format(**wrong.row(0, named=True)) if wrong.height else ""
    text = f"{n} selections, {wrong.height - desynced} from other pools, {desynced} choose otherwise from one pool{first}"
    shown = [f"real {one}   sim {two}" for one, two in wrong.head(3).select("chosen", "chosen_sim").iter_rows()]
    if pair.exact:
        return failed(text, effect=wrong.height / n, tol=0.0, n=n, detail=shown) if wrong.height else _held(text, n)
    if not real["policy"].is_in(BY_POOL).all():
        return Finding(None, f"{text} (`{real['policy'][0]}` looks at more than the set)", effect=desynced / n, n=n)
    return failed(text, effect=desynced / n, tol=0.0, n=n, detail=shown) if desynced else _held(text, n)


def _held(text: str, n: int) -> Finding:
    return passed(text, effect=0.0, tol=0.0, n=n)


def parted(real: pl.DataFrame, sim: pl.DataFrame) -> pl.DataFrame:
    """The selections that differ, and in what: `parted`. Another number wanted isn't another decision."""
    both = real.join(sim, on="number", suffix="_sim", maintain_order="left")
    other_choice = (pl.col("chosen") != pl.col("chosen_sim")) & (pl.col("chosen").list.len() == pl.col("chosen_sim").list.len())
    other_pool = pl.col("eligible_fp").ne_missing(pl.col("eligible_fp_sim"))
    what = pl.when(other_pool).then(pl.lit("INPUT DIVERGENCE")).when(other_choice).then(pl.lit(DESYNC))
    return both.with_columns(parted=what).drop_nulls("parted")
