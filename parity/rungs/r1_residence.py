"""R1: a trainer has one assignment at a time."""

from dataclasses import replace

from parity.derived.inflight import timeline_of
from parity.derived.ledger import ledger_of
from parity.evidence import Pair, Run, Window
from parity.exhibits import Timelines
from parity.rung import INV, LOGICAL, Finding, rung
from parity.single import Look, in_each


@rung(
    id="R1",
    name="r1_residence",
    stage=3,
    tier=INV,
    domain=LOGICAL,
    needs=["dispatch.id", "accepted.id", "agg_round.cohort"],
    reads=["intrusion", "peer"],
    upstream=["S2"],
)
def residence(pair: Pair, window: Window) -> Finding:
    """No second assign goes to a trainer while it has an open row.

    What it checks: in each run, a trainer's rows one after the other. A row is open from its dispatch to its
        release or its void, and an accepted update holds its slot up to a close at least; the next dispatch
        may only come after that.
    Why: two ledgers that disagreed gave 62.9 % overlap and 215 double dispatches in the reference system.
    Reads: dispatch, accepted, agg_round.cohort, intrusion, peer, in the order in which the aggregator wrote them.
    Statistic: share of dispatches that overlap the one before.
    Tolerance: 0.
    Known limits: the whole run is looked at, the window or not. Which close took an update is U4's affair.
    """
    exhibit = Timelines({run.side: run.derived(timeline_of) for run in pair.runs})
    return replace(in_each(pair.runs, overlaps, "dispatches"), exhibit=exhibit)


def overlaps(run: Run) -> Look:
    """The dispatches of `run` to a trainer whose row before was still open."""
    ledger = run.derived(ledger_of)
    faults = [
        f"cycle {row['cycle']}: `{row['trainer']}` got id {row['id']} while id {row['before_id']} (of cycle {row['before_cycle']}) was open"
        for row in ledger.successions().filter("overlaps").iter_rows(named=True)
    ]
    return Look(ledger.rows.height, [*(f"id {twice} was dispatched twice" for twice in ledger.twice), *faults])
