"""U5: the members of a cycle come in the same order."""

from statistics import fmean

import numpy as np
import polars as pl

from parity.evidence import Pair, Run, Window
from parity.measures.tables import equal_rows
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
    real, sim = _common(pair, window)
    if not real.height:
        return skipped("no common cycle has two members in common")
    if pair.exact:
        return equal_rows("cycles", "cycle {cycle}", real, sim)
    effect, n = fmean(_spearman(*both) for both in zip(real["order"].to_list(), sim["order"].to_list(), strict=True)), real.height
    if not all(_settled(run, window) for run in pair.runs):
        return Finding(None, f"not enforced, arrivals decide: mean rank correlation {effect:.2f}", effect=effect, n=n)
    judge = passed if effect >= TOL else failed
    return judge(f"mean rank correlation {effect:.2f} over {n} cycles", effect=effect, tol=TOL, n=n)


def _settled(run: Run, window: Window) -> bool:
    """Whether the durations of its members settle the order of each cycle."""
    members = window.in_cycles(run.members)
    delays = run.frame("dispatch", "id", "delay_ns").unique("id")
    lasting = members.join(delays, on="id").sort("cycle", "delay_ns")
    gaps = lasting.select("cycle", gap_s=pl.col("delay_ns").diff().over("cycle") / 1e9).drop_nulls()
    together = members.group_by("cycle").agg(pl.col("dispatched_ns").n_unique())["dispatched_ns"]
    return bool((together == 1).all()) and bool((gaps["gap_s"] > JITTER_S).all())


def _common(pair: Pair, window: Window) -> tuple[pl.DataFrame, pl.DataFrame]:
    """cycle, order: of each cycle that has two members in common, those that are in both runs, in the order of either."""
    key = ["cycle", "trainer"]
    real, sim = (window.in_cycles(run.members).select(key) for run in pair.runs)
    one, two = (
        side.join(other, on=key, how="semi", maintain_order="left").group_by("cycle", maintain_order=True).agg(order="trainer")
        for side, other in ((real, sim), (sim, real))
    )
    several = one.filter(pl.col("order").list.len() > 1)
    return several, several.select("cycle").join(two, on="cycle", maintain_order="left")


def _spearman(real: list[str], sim: list[str]) -> float:
    """The rank correlation of where each is in both orders."""
    places = {node: place for place, node in reversed(list(enumerate(sim)))}
    theirs = pl.Series([places[node] for node in real]).rank()
    return float(np.corrcoef(np.arange(len(real)), theirs.to_numpy())[0, 1])
