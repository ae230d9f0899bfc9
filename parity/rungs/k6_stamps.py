"""K6: an update carries the stamp that its assign announced."""

from collections.abc import Iterator
from typing import Any

from parity.evidence import Pair, Run, Window
from parity.rung import INV, LOGICAL, Finding, rung
from parity.single import Look, in_each

Plain = dict[str, Any]


@rung(
    id="K6",
    name="stamps",
    stage=4,
    tier=INV,
    domain=LOGICAL,
    needs=["dispatch.stamp_ns", "dispatch.due_ns", "dispatch.delay_ns", "accepted.interval_ns", "agg_round.cohort"],
    reads=["task_send"],
    upstream=["K10"],
)
def stamps(pair: Pair, window: Window) -> Finding:
    """Each update echoes its assign id, and its stamp is its due: assign + D and legs.

    What it checks: in each run, due = stamp + D (and the legs of a modelled WAN) of every dispatch, or, where it was said to be
        withheld, a later instant, which C2w asks of the trace; every released update, every sent one
        and every member of a closed cycle names a dispatched id of the same trainer and has its dispatch
        stamp and its due. In the fidelity tier an update's stamp is its arrival, never before its due.
    Why: the stamp decides order, staleness and budgets; one that is made up anywhere else breaks them all.
    Reads: dispatch, accepted, task_send (where written), agg_round.cohort.
    Statistic: number of stamps that are not what they should be.
    Tolerance: 0.
    Known limits: that a leg is as long as its bytes say isn't counted again here.
    """
    return in_each(pair.runs, wrong_stamps, "stamps")


def wrong_stamps(run: Run) -> Look:
    """The stamps of `run` that don't follow from their dispatches."""
    assigns = {row["id"]: row for row in run.frame("dispatch").sort("_seq").iter_rows(named=True)}
    exact = run.condition.tier == "exact"
    withheld = {row["id"]: (row["done_ns"], row["due_ns"]) for row in run.frame("withheld").iter_rows(named=True)}
    faults = [f"id {row['id']}: {fault}" for row in assigns.values() if (fault := _misplaced(row, withheld.get(row["id"])))]
    echoes = list(_echoes(run))
    for where, echo in echoes:
        wrong = _wrong(assigns.get(echo["id"]), echo, exact)
        faults += [f"{where}, id {echo['id']}: {wrong}"] if wrong else []
    return Look(len(assigns) + len(echoes), faults)


def _misplaced(assign: Plain, withheld: tuple[int, int] | None) -> str | None:
    """What is wrong with a due: it is stamp + D, or, where its trainer is away then, what was said to be withheld."""
    done = assign["stamp_ns"] + assign["delay_ns"]
    if withheld is not None and (withheld != (done, assign["due_ns"]) or assign["due_ns"] <= done):
        return f"withheld from {_s(withheld[0])} to {_s(withheld[1])}, due at {_s(assign['due_ns'])}"
    return "due is not stamp + D" if withheld is None and assign["due_ns"] != done else None


def _echoes(run: Run) -> Iterator[tuple[str, Plain]]:
    """Everything that repeats an assign's id: (where, id, trainer, dispatched, stamp, due), what is unknown left out."""
    for row in run.frame("accepted").sort("_seq").iter_rows(named=True):
        start, end = row["interval_ns"] or (None, None)
        yield f"cycle {row['cycle']}", _echo(row, dispatched=start, stamp=end, due=row["due_ns"])
    for row in run.frame("task_send").iter_rows(named=True):
        yield "task_send", _echo(row, due=row["stamp_ns"])
    for cycle, cohort in run.rounds.select("cycle", "cohort").iter_rows():
        for member in cohort:
            yield f"cohort of cycle {cycle}", _echo(member, dispatched=member["dispatched_ns"], stamp=member["stamp_ns"])


def _echo(row: Plain, **stamps: int | None) -> Plain:
    return {"id": row["id"], "trainer": row["trainer"], **stamps}


def _wrong(assign: Plain | None, echo: Plain, exact: bool) -> str | None:
    """What of `echo` isn't as its assign had it, in words."""
    if assign is None:
        return "was never dispatched"
    if echo["trainer"] != assign["trainer"]:
        return f"is `{assign['trainer']}`'s, not `{echo['trainer']}`'s"
    if echo.get("dispatched", assign["stamp_ns"]) != assign["stamp_ns"]:
        return f"dispatched at {_s(assign['stamp_ns'])}, echoed {_s(echo['dispatched'])}"
    if echo.get("due", assign["due_ns"]) != assign["due_ns"]:
        return f"due at {_s(assign['due_ns'])}, echoed {_s(echo['due'])}"
    stamp = echo.get("stamp")
    if stamp is not None and (stamp != assign["due_ns"] if exact else stamp < assign["due_ns"]):
        return f"stamp {_s(stamp)} is {'not' if exact else 'before'} its due {_s(assign['due_ns'])}"
    return None


def _s(ns: int | None) -> str:
    return "-" if ns is None else f"{ns / 1e9:.6f}"
