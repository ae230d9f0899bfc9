"""What the traces of a condition say of a run: who was away, and when an answer could count.

Traces belong to the condition, so both are told without a word of the run itself. A condition whose
trace file isn't here can't be asked, and a look says that it had nothing to look at.
"""

from collections.abc import Iterator, Mapping, Set
from typing import Any

import polars as pl

from flame.config.availability import traces
from flame.config.errors import ConfigError
from flame.core.trace import Trace
from parity.evidence import Run
from parity.ledger import ledger_of
from parity.rungs.a6_trace_fidelity import against_trace
from parity.single import Look

Plain = dict[str, Any]


def traces_of(run: Run) -> Mapping[str, Trace] | None:
    """The trace of each trainer; None where everybody is always there, or where the file of traces isn't."""
    if run.condition.availability.trace == "syn_0":
        return None
    try:
        return traces(run.condition)
    except ConfigError:
        return None


def misbelieved(run: Run) -> Look:
    """Dispatches to a trainer that was away by its trace, where the awareness policy lets the aggregator know it."""
    known = run.derived(traces_of)
    if known is None or run.condition.awareness == "none":
        return Look(0)
    rows = (
        run.frame("dispatch", "_seq", "id", "trainer", "stamp_ns")
        .sort("_seq")
        .select("id", "trainer", pl.col("stamp_ns").cum_max())
        .drop_nulls()
    )
    faults = [
        f"`{trainer}` got id {key} at {stamp / 1e9:.6f}, when it was known to be away"
        for key, trainer, stamp in rows.iter_rows()
        if trainer in known and not known[trainer].available(stamp)
    ]
    return Look(rows.height, faults)


def only_withheld(run: Run) -> Look:
    """Whoever is away when its work is done has its update withheld to its next available instant, and it counts only then."""
    if run.derived(traces_of) is None:
        return Look(0)
    assigns, counted = against_trace(run), wrongly_withheld(run)
    return Look(assigns.n + counted.n, [*assigns.faults, *counted.faults])


def wrongly_withheld(run: Run) -> Look:
    """Withheld updates that count at another instant than the next available one, with a wrong age, or never."""
    known = run.derived(traces_of)
    ups = run.frame("dispatch", "id", "up_ns").unique("id")
    withheld = run.frame("withheld").sort("_seq").join(ups, on="id", how="left", maintain_order="left").rows(named=True)
    updates = run.frame("accepted", "id", "staleness", "interval_ns", "cycle", "model_version")
    released = {row["id"]: row for row in updates.filter(pl.col("id").is_in([row["id"] for row in withheld])).rows(named=True)}
    lost = _lost(run) if len(released) < len(withheld) else set()
    faults = [f"id {row['id']} of `{row['trainer']}` {fault}" for row in withheld for fault in _of_one(run, row, known, released, lost)]
    taken = sum(row["id"] in released for row in withheld)
    return Look(len(withheld), faults, f"{taken} of {len(withheld)} withheld updates were released")


def _of_one(run: Run, row: Plain, known: Mapping[str, Trace] | None, released: Mapping[int, Plain], lost: Set[int]) -> Iterator[str]:
    if known is not None and (counts := _counts(row, known[row["trainer"]])) != row["due_ns"]:
        yield f"counts at {row['due_ns'] / 1e9:.6f}, by its trainer's trace at {'-' if counts is None else f'{counts / 1e9:.6f}'}"
    update = released.get(row["id"])
    if update is None:
        if row["id"] in lost:
            yield f"was due at {row['due_ns'] / 1e9:.6f} and never released"
        return
    age = _age(run, row, update)
    if abs(update["staleness"] - age) > 1e-9:
        yield f"has staleness {update['staleness']:g}, it is {age:g}"


def _counts(withheld: Plain, trace: Trace) -> int | None:
    """When it should: it leaves once its trainer is back, and goes up."""
    back = trace.next_available(withheld["done_ns"] - withheld["up_ns"])
    return None if back is None else back + withheld["up_ns"]


def _lost(run: Run) -> set[int]:
    """The rows that were never released and should have been: something later was, in stamps or from their own trainer."""
    rows = run.derived(ledger_of).rows.select("id", "due_ns", "ends", later=pl.col("seq") < pl.col("seq").max().over("trainer"))
    last = run.rounds["stamp_ns"].max()
    overtaken = pl.col("due_ns") < last if run.condition.tier == "exact" and isinstance(last, int) else pl.lit(False)
    return set(rows.filter((pl.col("ends") == 0) & (overtaken | pl.col("later")))["id"])


def _age(run: Run, row: Plain, update: Plain) -> float:
    """How old an update is at its release, in the condition's unit; `row` holds the ordinals of its dispatch."""
    start, end = update["interval_ns"]
    ages = {
        "version": update["model_version"] - row["model_version"], "cycle": update["cycle"] - row["cycle"], "stamp": (end - start) / 1e9,
    }  # fmt: skip
    return float(ages[run.condition.staleness_unit])
