"""A2b: those who could be chosen are as fast."""

from statistics import fmean

from parity.compare import equal
from parity.evidence import Pair, Run, Window
from parity.pools import durations, pools
from parity.rung import DIST, LOGICAL, Finding, measured, rung, skipped
from parity.statistics import ks

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
    Known limits: SKIP beyond two million trainers times selections. Pools that ledger and traces don't explain are left out:
        A7, R1 and U4 say what is wrong with them.
    """
    real, sim = (_speeds(run, window) for run in pair.runs)
    common = [place for place in real if place in sim]
    if not common:
        return skipped("no selection whose pool is known in both runs: too many to tell, or the ledger doesn't explain them")
    if pair.exact:
        return equal("selections", *({f"selection {place}": side[place] for place in common} for side in (real, sim)))
    return measured(ks([fmean(each) for each in real.values()], [fmean(each) for each in sim.values()], TOL))


def _speeds(run: Run, window: Window) -> dict[int, list[float]]:
    """Selection -> sorted durations of its pool, where anybody was in it and the names are sure."""
    known = run.derived(durations)
    sure = ((number, pool) for number, pool in enumerate(pools(run, window)) if pool.free and pool.fingerprint == pool.written)
    return {number: sorted(known[node] for node in pool.free) for number, pool in sure}
