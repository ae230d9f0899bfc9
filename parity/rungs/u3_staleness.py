"""U3: updates are as old when they are taken."""

import polars as pl

from parity.evidence import Pair, Window
from parity.measures.statistics import ks, mean
from parity.rung import DIST, LOGICAL, Finding, failed, measured, rung
from parity.rungs.accepts import equal_by_id


@rung(
    id="U3",
    name="staleness",
    stage=6,
    tier=DIST,
    domain=LOGICAL,
    needs=["accepted.staleness"],
    upstream=["K3", "U5", "L1"],
    over="cycles",
)
def staleness(pair: Pair, window: Window) -> Finding:
    """The age of the updates that were taken agrees, and none is negative.

    What it checks: accepted.staleness of each accepted update, by its assign id (exact) or as a distribution
        over the completed bins, in the condition's `staleness_unit`.
    Why: rates, refusals and the direction of an asynchronous model all hang on it.
    Reads: accepted.staleness.
    Statistic: equality (exact); KS and difference of the means (fidelity). In both: how many are negative.
    Tolerance: exact 0; fidelity: KS 0.2, mean 1.0. Negative: 0.
    Known limits: refused updates are left out; why they were refused is a matter of the staleness policy.
    """
    for run in pair.runs:
        before = run.accepts("id", "staleness").filter(pl.col("staleness") < 0)
        if before.height:
            key, age = before.select("id", "staleness").row(0)
            return failed(f"{run.side}: {before.height} negative, first id {key}: {age}", effect=float(before.height), tol=0.0)
    if pair.exact:
        return equal_by_id(pair, window, "accepted updates", "staleness")
    one, two = (window.in_cycles(run.accepts("staleness"))["staleness"] for run in pair.runs)
    return measured(ks(one, two, 0.2), mean(one, two, 1.0, name="mean staleness"))
