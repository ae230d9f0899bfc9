"""A7: what the aggregator believed is what the traces say."""

from collections.abc import Iterator
from statistics import fmean

import polars as pl

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
        "dispatch.up_ns",
        "accepted.due_ns",
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
        that ledger, awareness and traces give. At each released update: that its trainer can train when it is sent.
    Why: belief by notification is only as good as its messages; here it is a function of the traces, and has to be that.
    Reads: selection, dispatch, accepted, agg_round.cohort, intrusion, peer; the traces of the condition.
    Statistic: exact: number of selections and updates that contradict the traces. Fidelity: mean distance of the believed
        share of the population, and the share of updates from somebody who was away.
    Tolerance: exact 0; fidelity 0.05 each.
    Known limits: a wrong ledger shows here as well; R1 and U4 tell the two apart. An update is
        sent at its due, less the leg up; that it is released later, when its trainer may have left, is no fault. SKIP where
        nobody is ever away.
    """
    nothing = unwatched(pair)
    if nothing:
        return skipped(nothing)
    n, effect, faults = 0, 0.0, list[str]()
    for run in pair.runs:
        told = pools(run, window)
        if not told:
            return skipped(f"{run.side} has no selection, or too many trainers and selections to tell")
        sent = _sent(run, window)
        away = list(_away(run, sent))
        apart = [abs(len(pool.free) - pool.eligible) / max(1, pool.candidates) for pool in told]
        n, effect = n + len(told) + len(sent), max(effect, fmean(apart), len(away) / max(1, len(sent)))
        faults += [f"{run.side}: {fault}" for fault in (*_misbelieved(told), *away)]
    if faults if pair.exact else effect > TOL:
        first = faults[0] if faults else f"the sizes of pools are {effect:.0%} of the population off"
        return failed(f"{len(faults)} of {n} contradict the traces: {first}", effect=effect, tol=TOL, n=n, detail=faults[:5])
    return passed(f"{n} selections and updates, {len(faults)} contradict the traces", effect=effect, tol=TOL, n=n)


def _misbelieved(told: list[Pool]) -> Iterator[str]:
    for number, pool in enumerate(told):
        if pool.fingerprint != pool.written:
            yield f"selection {number} (cycle {pool.cycle}): {pool.eligible} eligible, by traces and ledger {len(pool.free)}, or others"


def _sent(run: Run, window: Window) -> list[tuple[int, str, int]]:
    """id, trainer and the modelled instant of sending, of each released update."""
    legs = run.frame("dispatch").select("id", "up_ns").unique("id", keep="first")
    released = window.in_cycles(run.frame("accepted")).join(legs, on="id", maintain_order="left")
    return released.select("id", "trainer", pl.col("due_ns") - pl.col("up_ns")).rows()


def _away(run: Run, sent: list[tuple[int, str, int]]) -> Iterator[str]:
    known = run.derived(traces_of)
    for key, trainer, stamp in sent:
        if trainer in known and not known[trainer].available(stamp):
            yield f"id {key} of `{trainer}` is sent at {stamp / 1e9:.3f}, when the trace has it away"
