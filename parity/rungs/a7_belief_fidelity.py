"""A7: what the aggregator believed is what the traces say."""

from collections.abc import Iterator
from statistics import fmean

from parity.evidence import Pair, Run, Window
from parity.pools import Pool, pools
from parity.presence import traces_of, unwatched
from parity.rung import DIST, LOGICAL, Finding, failed, passed, rung, skipped

TOL = 0.05


@rung(
    id="A7",
    name="belief_fidelity",
    stage=2,
    tier=DIST,
    domain=LOGICAL,
    needs=[
        "selection.eligible",
        "selection.eligible_fp",
        "selection.chosen",
        "dispatch.trainer",
        "accepted.interval_ns",
        "agg_round.cohort",
    ],
    reads=["intrusion", "peer"],
    upstream=["A3"],
    over="cycles",
    alone=True,
)
def belief_fidelity(pair: Pair, window: Window) -> Finding:
    """The pool is who is free and, as far as the awareness goes, available by its trace; updates come from who is there.

    What it checks: in each run, at each selection: the pool that was written, its size and its fingerprint, against the one
        that ledger, awareness and traces give. At each released update: that its trainer can train at its stamp.
    Why: belief by notification is only as good as its messages; here it is a function of the traces, and has to be that.
    Reads: selection, dispatch, accepted, agg_round.cohort, intrusion, peer; the traces of the condition.
    Statistic: exact: number of selections and updates that contradict the traces. Fidelity: mean distance of the believed
        share of the population, and the share of updates from somebody who was away.
    Tolerance: exact 0; fidelity 0.05 each.
    Known limits: a wrong ledger shows here as well; R1 and U4 tell the two apart. In arrival order an update is released
        later than it was sent, and its trainer may have left meanwhile. SKIP where nobody is ever away.
    """
    nothing = unwatched(pair)
    if nothing:
        return skipped(nothing)
    n, effect, faults = 0, 0.0, list[str]()
    for run in pair.runs:
        told = pools(run, window)
        if not told:
            return skipped(f"{run.side} has no selection, or too many trainers and selections to tell")
        sent = window.in_cycles(run.frame("accepted")).select("id", "trainer", "interval_ns").rows()
        away = list(_away(run, sent))
        apart = [abs(len(pool.free) - pool.eligible) / max(1, pool.candidates) for pool in told]
        n, effect = n + len(told) + len(sent), max(effect, fmean(apart), len(away) / max(1, len(sent)))
        faults += [f"{run.side}: {fault}" for fault in (*_misbelieved(told), *away)]
    if faults if pair.exact else effect > TOL:
        return failed(f"{len(faults)} of {n} contradict the traces: {faults[0]}", effect=effect, tol=TOL, n=n, detail=faults[:5])
    return passed(f"{n} selections and updates, {len(faults)} contradict the traces", effect=effect, tol=TOL, n=n)


def _misbelieved(told: list[Pool]) -> Iterator[str]:
    for number, pool in enumerate(told):
        if pool.fingerprint != pool.written:
            yield f"selection {number} (cycle {pool.cycle}): {pool.eligible} eligible, by traces and ledger {len(pool.free)}, or others"


def _away(run: Run, sent: list[tuple[int, str, list[int]]]) -> Iterator[str]:
    known = run.derived(traces_of)
    for key, trainer, (_, stamp) in sent:
        if trainer in known and not known[trainer].available(stamp):
            yield f"id {key} of `{trainer}` is released at {stamp / 1e9:.3f}, when the trace has it away"
