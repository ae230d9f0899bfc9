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
    needs=["selection.eligible", "dispatch.trainer", "accepted.id", "agg_round.cohort"],
    reads=["intrusion", "peer"],
    upstream=["A1"],
    over="cycles",
)
def eligible_speed(pair: Pair, window: Window) -> Finding:
    """At each selection the trainers in the pool have the same modelled durations.

    What it checks: who was free and believed available at each selection, told again from dispatches, releases, closes and
        the traces, and the modelled D of each.
    Why: fast trainers are back sooner, so they are in the pool more often: a pool of the right size may be of the wrong
        speed, and every cycle that is made from it is.
    Reads: selection, dispatch, accepted, agg_round.cohort, intrusion, peer; devices and traces of the condition.
    Statistic: equality of the durations, sorted, selection by selection (exact); KS of the mean duration in the pool, one
        value per selection (fidelity).
    Tolerance: exact 0; fidelity 0.2.
    Known limits: SKIP beyond two million trainers times selections. That the pool as told again is the one that was written
        is A7's affair, where somebody may be away.
    """
    real, sim = (_speeds(run, window) for run in pair.runs)
    if not real or not sim:
        return skipped("one run has no selection with somebody to choose, or too many trainers and selections to tell")
    if pair.exact:
        return equal("selections", real, sim)
    return measured(ks([fmean(each) for each in real.values()], [fmean(each) for each in sim.values()], TOL))


def _speeds(run: Run, window: Window) -> dict[str, list[float]]:
    """Selection -> sorted durations of its pool, where anybody was in it."""
    known = run.derived(durations)
    told = enumerate(pools(run, window))
    return {f"selection {number} (cycle {pool.cycle})": sorted(known[node] for node in pool.free) for number, pool in told if pool.free}
