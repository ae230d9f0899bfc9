"""U4: a cycle closes with K accepts, and no update is lost or counted twice."""

from collections import Counter
from collections.abc import Iterator

import polars as pl

from parity.derived.ledger import Ledger, ledger_of
from parity.evidence import Pair, Run, Window
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
    waiting = ledger.open.filter(pl.col("accepts") > 0).height
    note = f"ended with {ledger.open.height - waiting} rows open and {waiting} accepts waiting"
    return Look(run.rounds.height + ledger.rows.height, faults, note)


def _cycles(run: Run) -> Iterator[str]:
    """Cycles of another size than K, and those that have a trainer twice."""
    twice = run.members.group_by("cycle", "trainer").len().filter(pl.col("len") > 1)["cycle"]
    wrong = pl.col("cycle").is_in(twice.to_list()) | (pl.col("cohort").list.len() != pl.col("goal"))
    for cycle, goal, cohort in run.rounds.filter(wrong).select("cycle", "goal", "cohort").iter_rows():
        if len(cohort) != goal:
            yield f"cycle {cycle} closed with {len(cohort)} accepts, K = {goal}"
        for trainer, times in Counter(member["trainer"] for member in cohort).items():
            if times > 1:
                yield f"cycle {cycle} counts `{trainer}` {times} times"


def _ends(ledger: Ledger) -> Iterator[str]:
    told = pl.format("{} in cycle {}", "ending", "cycle")
    wrong = ledger.rows.filter((pl.col("ends") > 1) | (pl.col("accepts") > 1)).select("id", "trainer", "ends", "accepts")
    how = (
        ledger.ends.join(wrong, on="id", how="semi", maintain_order="left")
        .group_by("id")
        .agg(how=told)
        .with_columns(pl.col("how").list.join(", "))
    )
    for key, trainer, ends, accepts, told_ends in wrong.join(how, on="id", how="left", maintain_order="left").iter_rows():
        if ends > 1:
            yield f"id {key} of `{trainer}` ended {ends} times: {told_ends}"
        if accepts > 1:
            yield f"id {key} of `{trainer}` was accepted {accepts} times"


def _uncounted(ledger: Ledger) -> Iterator[str]:
    """Updates that a cycle has and nobody accepted, and accepted ones that a later accept overtook into a cycle."""
    last = ledger.rows.filter("closed")["accept_seq"].max()
    overtaken = (pl.col("accepts") > 0) & (pl.col("ends") == 0) & (pl.col("accept_seq") < (-1 if last is None else last))
    wrong = ledger.rows.filter((pl.col("closed") & (pl.col("accepts") == 0)) | overtaken)
    for key, trainer, closed, cycle in wrong.select("id", "trainer", "closed", "end_cycle").iter_rows():
        if closed:
            yield f"id {key} of `{trainer}` is in cycle {cycle} and was never accepted"
        else:
            yield f"id {key} of `{trainer}` was accepted and is in no cycle"


def _overdue(run: Run, ledger: Ledger) -> Iterator[str]:
    """Open rows that a later update overtook (exact tier)."""
    frontier = run.rounds["stamp_ns"].max()
    if run.condition.tier != "exact" or not isinstance(frontier, int):
        return
    lost = ledger.open.filter((pl.col("due_ns") < frontier) & (pl.col("accepts") == 0))
    for key, trainer, due in lost.select("id", "trainer", "due_ns").iter_rows():
        yield f"id {key} of `{trainer}`, due at {due / 1e9:.6f}, was lost: the last close is at {frontier / 1e9:.6f}"
