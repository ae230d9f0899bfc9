"""A7: what the aggregator believed is what the traces say."""

from collections.abc import Iterator

import polars as pl

from parity.derived.pools import pools
from parity.derived.presence import available_at, traces_of, unwatched
from parity.evidence import Pair, Run, Window
from parity.measures.tables import in_order
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
        told = pools(run, window).told
        if not told.height:
            return skipped(f"{run.side} has no selection, or too many trainers and selections to tell")
        sent = _sent(run, window)
        away = list(_away(run, sent))
        gap = (pl.col("size") - pl.col("eligible")).abs() / pl.max_horizontal(pl.lit(1), "candidates")
        n, effect = n + told.height + sent.height, max(effect, told.select(gap.mean()).item(), len(away) / max(1, sent.height))
        faults += [f"{run.side}: {fault}" for fault in (*_misbelieved(told), *away)]
    if faults if pair.exact else effect > TOL:
        first = faults[0] if faults else f"the sizes of pools are {effect:.0%} of the population off"
        return failed(f"{len(faults)} of {n} contradict the traces: {first}", effect=effect, tol=TOL, n=n, detail=faults[:5])
    return passed(f"{n} selections and updates, {len(faults)} contradict the traces", effect=effect, tol=TOL, n=n)


def _misbelieved(told: pl.DataFrame) -> Iterator[str]:
    wrong = in_order(told).filter(pl.col("fingerprint").ne_missing(pl.col("written")))
    for row in wrong.iter_rows(named=True):
        yield "selection {number} (cycle {cycle}): {eligible} eligible, by traces and ledger {size}, or others".format(**row)


def _sent(run: Run, window: Window) -> pl.DataFrame:
    """id, trainer and the modelled instant of sending, `stamp`, of each released update."""
    legs = run.frame("dispatch", "id", "up_ns").unique("id", keep="first")
    released = window.in_cycles(run.frame("accepted", "cycle", "id", "trainer", "due_ns"))
    known = in_order(released).join(legs, on="id", maintain_order="left")
    return known.select("number", "id", "trainer", stamp=pl.col("due_ns") - pl.col("up_ns"))


def _away(run: Run, sent: pl.DataFrame) -> Iterator[str]:
    known = run.derived(traces_of)
    parts = sent.partition_by("trainer", as_dict=True)
    away = [own.filter(~available_at(known[str(node)], own["stamp"].to_numpy())) for (node,), own in parts.items() if node in known]
    for _, key, trainer, stamp in pl.concat([sent.clear(), *away]).sort("number").iter_rows():
        yield f"id {key} of `{trainer}` is sent at {stamp / 1e9:.3f}, when the trace has it away"
