"""A2b: those who could be chosen are as fast."""

import numpy as np
import polars as pl

from parity.derived.pools import durations, pools
from parity.evidence import Pair, Run, Window
from parity.measures.statistics import ks
from parity.measures.tables import equal_rows, in_order
from parity.rung import DIST, LOGICAL, Finding, measured, rung, skipped

TOL = 0.2


@rung(
    id="A2b",
    name="eligible_speed",
    stage=2,
    tier=DIST,
    domain=LOGICAL,
    needs=["selection.eligible_fp", "selection.chosen", "dispatch.trainer", "accepted.id", "agg_round.cohort"],
    reads=["intrusion", "peer"],
    upstream=["A1"],
    over="cycles",
)
def eligible_speed(pair: Pair, window: Window) -> Finding:
    """At each selection the trainers in the pool have the same modelled durations.

    What it checks: who was free and believed available at each selection, told again from dispatches, releases, closes and
        the traces, and the modelled D of each. Only where the fingerprint that was written confirms the names.
    Why: fast trainers are back sooner, so they are in the pool more often: a pool of the right size may be of the wrong
        speed, and every cycle that is made from it is.
    Reads: selection, dispatch, accepted, agg_round.cohort, intrusion, peer; devices and traces of the condition.
    Statistic: equality of the durations, sorted, selection by selection (exact); KS of the mean duration in the pool, one
        value per selection (fidelity).
    Tolerance: exact 0; fidelity 0.2.
    Known limits: SKIP beyond five million trainers times selections. Pools that ledger and traces don't explain are left out:
        A7, R1 and U4 say what is wrong with them.
    """
    real, sim = (_speeds(run, window) for run in pair.runs)
    common = [side.join(other.select("number"), on="number", how="semi") for side, other in ((real, sim), (sim, real))]
    if not common[0].height:
        return skipped("no selection whose pool is known in both runs: too many to tell, or the ledger doesn't explain them")
    if pair.exact:
        return equal_rows("selections", "selection {number}", *common)
    return measured(ks(real["delays"].list.mean(), sim["delays"].list.mean(), TOL))


def _speeds(run: Run, window: Window) -> pl.DataFrame:
    """number, delays: sorted durations of each selection's pool, where anybody was in it and the names are sure."""
    known, told = run.derived(durations), pools(run, window)
    numbered = in_order(told.told)
    sure = numbered.select((pl.col("size") > 0) & (pl.col("fingerprint") == pl.col("written")).fill_null(False)).to_series()
    delays = np.array([known.get(node, np.nan) for node in told.nodes])
    by_speed = np.argsort(delays, kind="stable")
    of_whom, who = np.nonzero(told.free[sure.to_numpy()][:, by_speed])
    each = pl.DataFrame({"number": numbered.filter(sure)["number"].gather(of_whom), "delays": delays[by_speed][who]})
    return each.group_by("number", maintain_order=True).agg("delays")
