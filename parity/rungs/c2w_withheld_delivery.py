"""C2w: what a trainer couldn't send while it was away counts when it is back."""

from collections.abc import Iterator, Mapping, Set
from typing import Any

import polars as pl

from flame.core.trace import Trace
from parity.derived.ledger import ledger_of
from parity.derived.presence import known_traces
from parity.evidence import Pair, Run, Window
from parity.rung import INV, LOGICAL, Finding, rung
from parity.single import Look, in_each

Plain = dict[str, Any]


@rung(
    id="C2w",
    name="withheld_delivery",
    stage=6,
    tier=INV,
    domain=LOGICAL,
    needs=["accepted.staleness", "accepted.interval_ns", "dispatch.up_ns"],
    reads=["withheld", "dispatch", "intrusion", "peer"],
    upstream=["U3", "C3"],
)
def withheld_delivery(pair: Pair, window: Window) -> Finding:
    """A withheld update is released at its trainer's next available instant, with its true age, and is never lost.

    What it checks: in each run, each assign that was said to be withheld: its due is the next instant of its trainer's
        trace at which it can train, and the leg up; its staleness is what passed since its dispatch; and it is released, unless
        it was given up for good or the run ended before.
    Why: an update that is sent by somebody who is away, or that is forgotten because it was late, is how a
        simulation of phones gets its results for free.
    Reads: withheld, dispatch, accepted, agg_round, intrusion, peer; the traces of the condition.
    Statistic: number of withheld updates that break the rule.
    Tolerance: 0.
    Known limits: a trace file that isn't where the condition has it can't be asked; the instant is then not checked.
        That an update's stamp is its due is K6's.
    """
    return in_each(pair.runs, wrongly_withheld, "withheld updates")


def wrongly_withheld(run: Run) -> Look:
    """Withheld updates that count at another instant than the next available one, with a wrong age, or never."""
    known = run.derived(known_traces)
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
