"""P1: each cycle is made of the same trainers."""

from dataclasses import replace

import polars as pl

from parity.derived.pools import selections
from parity.evidence import Pair, Run, Window
from parity.measures.tables import equal_rows
from parity.rung import DIST, LOGICAL, Finding, rung


@rung(
    id="P1",
    name="aggregation_sequence",
    stage=6,
    tier=DIST,
    domain=LOGICAL,
    needs=["agg_round.cohort"],
    reads=["selection"],
    upstream=["S2", "U5", "L1"],
    over="cycles",
)
def aggregation_sequence(pair: Pair, window: Window) -> Finding:
    """The set of contributors of each cycle is the same.

    What it checks: who is in each closed cycle of the window, in no order.
    Why: it is what is left of L1 where the order of arrivals is measured: who, if not when.
    Reads: agg_round.cohort; selection (whether everybody was chosen).
    Statistic: share of cycles whose sets differ.
    Tolerance: 0. In the fidelity tier it is enforced where the data leave no choice: every selection took all that
        were eligible, and each cycle waited for all that it may hold (K = C), from equal pools. Elsewhere it is DIAG.
    Known limits: a difference of sets that a race of two arrivals made is no fault; U5 judges the order.
    """
    finding = equal_rows("contributor sets", "cycle {cycle}", *(_sets(run, window) for run in pair.runs))
    if pair.exact or (all(_without_choice(run) for run in pair.runs) and _from_equal_pools(pair, window)):
        return finding
    return replace(finding, ok=None, reason=f"not enforced, arrivals decide: {finding.reason}", detail=())


def _sets(run: Run, window: Window) -> pl.DataFrame:
    trainers = pl.col("cohort").list.eval(pl.element().struct.field("trainer")).list.sort()
    return window.in_cycles(run.rounds).select("cycle", trainers)


def _from_equal_pools(pair: Pair, window: Window) -> bool:
    """Whether arrivals changed nobody's being there."""
    real, sim = (selections(run, window, "eligible_fp")["eligible_fp"].to_list() for run in pair.runs)
    return real == sim


def _without_choice(run: Run) -> bool:
    """Whether every selection took everybody, and every cycle waited for everybody."""
    chosen = run.frame("selection", "chosen", "eligible").select(whole=pl.col("chosen").list.len() == pl.col("eligible"))["whole"]
    return bool(chosen.len()) and bool(chosen.all()) and bool((run.rounds["goal"] == run.rounds["concurrency"]).all())
