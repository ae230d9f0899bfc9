"""U5: the members of a cycle come in the same order."""

from statistics import fmean

import polars as pl
from scipy import stats

from parity.compare import equal
from parity.evidence import Pair, Run, Window
from parity.rung import DIST, LOGICAL, Finding, failed, passed, rung, skipped
from parity.rungs.lags import JITTER_S

TOL = 0.7


@rung(
    id="U5",
    name="inter_arrival_order",
    stage=5,
    tier=DIST,
    domain=LOGICAL,
    needs=["agg_round.cohort", "dispatch.delay_ns"],
    upstream=["K3", "S34"],
    over="cycles",
)
def inter_arrival_order(pair: Pair, window: Window) -> Finding:
    """Those who contributed to a cycle in both runs did so in the same order.

    What it checks: the positions, in each common cycle, of the trainers that are in it in both runs.
    Why: order is what staleness, carried surplus and the bits of a sum hang on; it parts before any of them does.
    Reads: agg_round.cohort.
    Statistic: equality of the orders (exact); Spearman's rank correlation per cycle, averaged over the cycles (fidelity).
    Tolerance: exact 0; fidelity >= 0.7, where the data leave no choice: each cycle was dispatched at one stamp, to trainers
        whose modelled durations no jitter can swap. Elsewhere it is DIAG.
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
    if not all(_settled(run, window) for run in pair.runs):
        return Finding(None, f"not enforced, arrivals decide: mean rank correlation {effect:.2f}", effect=effect, n=len(ordered))
    judge = passed if effect >= TOL else failed
    return judge(f"mean rank correlation {effect:.2f} over {len(ordered)} cycles", effect=effect, tol=TOL, n=len(ordered))


def _settled(run: Run, window: Window) -> bool:
    """Whether the durations of its members settle the order of each cycle."""
    members = window.in_cycles(run.rounds).select("cycle", "cohort").explode("cohort").unnest("cohort")
    delays = run.frame("dispatch").select("id", "delay_ns").unique("id")
    lasting = members.join(delays, on="id").sort("cycle", "delay_ns")
    gaps = lasting.select("cycle", gap_s=pl.col("delay_ns").diff().over("cycle") / 1e9).drop_nulls()
    together = members.group_by("cycle").agg(pl.col("dispatched_ns").n_unique())["dispatched_ns"]
    return bool((together == 1).all()) and bool((gaps["gap_s"] > JITTER_S).all())


def _orders(run: Run, window: Window) -> dict[int, list[str]]:
    rows = window.in_cycles(run.rounds).select("cycle", "cohort").iter_rows()
    return {cycle: [member["trainer"] for member in cohort] for cycle, cohort in rows}


def _common(real: list[str], sim: list[str]) -> tuple[list[str], list[str]]:
    """The trainers of both, in the order of each."""
    return [node for node in real if node in sim], [node for node in sim if node in real]


def _spearman(real: list[str], sim: list[str]) -> float:
    return float(stats.spearmanr(range(len(real)), [sim.index(node) for node in real]).statistic)
