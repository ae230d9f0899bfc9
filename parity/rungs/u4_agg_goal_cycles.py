"""U4: a cycle closes with K accepts, and no update is lost or counted twice."""

from collections import Counter
from collections.abc import Iterator

from parity.evidence import Pair, Run, Window
from parity.ledger import Ledger, Row, ledger_of
from parity.rung import INV, LOGICAL, Finding, rung
from parity.single import Look, in_each


@rung(
    id="U4",
    name="agg_goal_cycles",
    stage=5,
    tier=INV,
    domain=LOGICAL,
    needs=["agg_round.cohort", "agg_round.goal", "dispatch.id", "accepted.id"],
    reads=["intrusion", "peer"],
    upstream=["R1", "K6"],
)
def agg_goal_cycles(pair: Pair, window: Window) -> Finding:
    """Every closed cycle has exactly K accepts; every row ends once (close, reject, void); none is lost.

    What it checks: in each run, the size of each closed cycle; that a trainer is in it once; that every row ends
        once at most, and that the ends are of dispatched rows; that each accepted update is in a cycle. In the
        exact tier a row that is still open is due no earlier than the last close, or it was lost.
    Why: surplus that is dropped doubles the work, an update that is counted twice biases the mean.
    Reads: agg_round.cohort, agg_round.goal, dispatch, accepted, intrusion, peer.
    Statistic: number of rows and cycles that break the rule.
    Tolerance: 0.
    Known limits: rows that are open when the run ends are counted as open, not as lost; accepted updates that
        wait for their cycle at the end, likewise.
    """
    return in_each(pair.runs, conservation, "cycles and rows")


def conservation(run: Run) -> Look:
    """The cycles and rows of `run` that break the rule of conservation."""
    ledger = run.derived(ledger_of)
    faults = [*_cycles(run), *ledger.strays, *_ends(ledger), *_uncounted(ledger), *_overdue(run, ledger)]
    waiting = [row for row in ledger.open if row.accepts]
    note = f"ended with {len(ledger.open) - len(waiting)} rows open and {len(waiting)} accepts waiting"
    return Look(run.rounds.height + len(ledger.rows), faults, note)


def _cycles(run: Run) -> Iterator[str]:
    for cycle, goal, cohort in run.rounds.select("cycle", "goal", "cohort").iter_rows():
        if len(cohort) != goal:
            yield f"cycle {cycle} closed with {len(cohort)} accepts, K = {goal}"
        for trainer, times in Counter(member["trainer"] for member in cohort).items():
            if times > 1:
                yield f"cycle {cycle} counts `{trainer}` {times} times"


def _ends(ledger: Ledger) -> Iterator[str]:
    for row in ledger.rows.values():
        if len(row.ends) > 1:
            ends = ", ".join(f"{ending} in cycle {cycle}" for ending, _, cycle in row.ends)
            yield f"id {row.id} of `{row.trainer}` ended {len(row.ends)} times: {ends}"
        if len(row.accepts) > 1:
            yield f"id {row.id} of `{row.trainer}` was accepted {len(row.accepts)} times"


def _uncounted(ledger: Ledger) -> Iterator[str]:
    """Updates that a cycle has and nobody accepted, and accepted ones that a later accept overtook into a cycle."""
    closed = [row for row in ledger.rows.values() if _closed(row)]
    last = max((row.accepts[0] for row in closed if row.accepts), default=-1)
    for row in ledger.rows.values():
        if _closed(row) and not row.accepts:
            yield f"id {row.id} of `{row.trainer}` is in cycle {row.ends[0][2]} and was never accepted"
        if row.accepts and not row.ends and row.accepts[0] < last:
            yield f"id {row.id} of `{row.trainer}` was accepted and is in no cycle"


def _closed(row: Row) -> bool:
    return any(ending == "close" for ending, _, _ in row.ends)


def _overdue(run: Run, ledger: Ledger) -> Iterator[str]:
    """Open rows that a later update overtook (exact tier)."""
    frontier = run.rounds["stamp_ns"].max()
    if run.condition.tier != "exact" or not isinstance(frontier, int):
        return
    for row in ledger.open:
        if row.due_ns < frontier and not row.accepts:
            yield f"id {row.id} of `{row.trainer}`, due at {row.due_ns / 1e9:.6f}, was lost: the last close is at {frontier / 1e9:.6f}"
