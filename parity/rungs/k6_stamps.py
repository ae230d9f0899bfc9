"""K6: an update carries the stamp that its assign announced."""

from collections.abc import Iterator
from typing import Any

import polars as pl

from parity.evidence import Pair, Run, Window
from parity.rung import INV, LOGICAL, Finding, rung
from parity.single import Look, in_each

Plain = dict[str, Any]

OWN = ":own"
"""Ends the names of what the assign itself says, beside its echo."""


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
    assigns = run.frame("dispatch", "_seq", "id", "trainer", "stamp_ns", "delay_ns", "due_ns").sort("_seq").drop("_seq")
    assigns = assigns.unique("id", keep="last", maintain_order=True)
    echoes, exact = list(_echoes(run)), run.condition.tier == "exact"
    faults = [f"id {row['id']}: {fault}" for row in _suspects(run, assigns) if (fault := _misplaced(row))]
    for frame in echoes:
        faults += [f"{row['where']}, id {row['id']}: {wrong}" for row in _strangers(frame, assigns, exact) if (wrong := _wrong(row, exact))]
    return Look(assigns.height + sum(frame.height for frame in echoes), faults)


def _suspects(run: Run, assigns: pl.DataFrame) -> Iterator[Plain]:
    """The assigns whose due isn't stamp + D, with what was said to be withheld of them; all of those that are withheld."""
    withheld = run.frame("withheld").select("id", "done_ns", held_ns="due_ns").unique("id", keep="last").with_columns(held=pl.lit(True))
    rows = assigns.join(withheld, on="id", how="left", maintain_order="left")
    return rows.filter(pl.col("held") | (pl.col("due_ns").ne_missing(pl.col("stamp_ns") + pl.col("delay_ns")))).iter_rows(named=True)


def _misplaced(row: Plain) -> str | None:
    """What is wrong with a due: it is stamp + D, or, where its trainer is away then, what was said to be withheld."""
    done, due = row["stamp_ns"] + row["delay_ns"], row["due_ns"]
    if row["held"] is None:
        return "due is not stamp + D" if due != done else None
    if (row["done_ns"], row["held_ns"]) != (done, due) or due <= done:
        return f"withheld from {_s(row['done_ns'])} to {_s(row['held_ns'])}, due at {_s(due)}"
    return None


def _echoes(run: Run) -> Iterator[pl.DataFrame]:
    """Everything that repeats an assign's id: where, id, trainer, and of dispatched, stamp and due what it repeats."""
    interval, cycle = pl.col("interval_ns"), pl.format("cycle {}", pl.col("cycle").cast(pl.String).fill_null("None"))
    accepted = run.frame("accepted", "_seq", "cycle", "id", "trainer", "interval_ns", "due_ns").sort("_seq")
    bounds = {"dispatched": interval.list.get(0, null_on_oob=True), "stamp": interval.list.get(1, null_on_oob=True)}
    yield accepted.select("id", "trainer", cycle.alias("where"), due="due_ns", **bounds)
    yield run.frame("task_send", "id", "trainer", "stamp_ns").select("id", "trainer", pl.lit("task_send").alias("where"), due="stamp_ns")
    member = {"dispatched": "dispatched_ns", "stamp": "stamp_ns"}
    yield run.members.select("id", "trainer", pl.format("cohort of cycle {}", "cycle").alias("where"), **member)


def _strangers(echoes: pl.DataFrame, assigns: pl.DataFrame, exact: bool) -> Iterator[Plain]:
    """The echoes that aren't as their assigns had it, beside these: their columns end in `:own`, and `known` says whether there is one."""
    own = assigns.select("id", pl.col("trainer", "stamp_ns", "due_ns").name.suffix(OWN)).with_columns(known=pl.lit(True))
    both = echoes.join(own, on="id", how="left", maintain_order="left")
    due = pl.col(f"due_ns{OWN}")
    wrong = [pl.col("known").is_null(), pl.col("trainer").ne_missing(pl.col(f"trainer{OWN}"))]
    if "dispatched" in echoes.columns:
        stamp = pl.col("stamp")
        wrong += [pl.col("dispatched").ne_missing(pl.col(f"stamp_ns{OWN}")), stamp.is_not_null() & (stamp != due if exact else stamp < due)]
    if "due" in echoes.columns:
        wrong.append(pl.col("due").ne_missing(due))
    return both.filter(pl.any_horizontal(wrong)).iter_rows(named=True)


def _wrong(echo: Plain, exact: bool) -> str | None:
    """What of `echo` isn't as its assign had it, in words."""
    if not echo["known"]:
        return "was never dispatched"
    trainer, begun, due = (echo[name + OWN] for name in ("trainer", "stamp_ns", "due_ns"))
    if echo["trainer"] != trainer:
        return f"is `{trainer}`'s, not `{echo['trainer']}`'s"
    if echo.get("dispatched", begun) != begun:
        return f"dispatched at {_s(begun)}, echoed {_s(echo['dispatched'])}"
    if echo.get("due", due) != due:
        return f"due at {_s(due)}, echoed {_s(echo['due'])}"
    stamp = echo.get("stamp")
    if stamp is not None and (stamp != due if exact else stamp < due):
        return f"stamp {_s(stamp)} is {'not' if exact else 'before'} its due {_s(due)}"
    return None


def _s(ns: int | None) -> str:
    return "-" if ns is None else f"{ns / 1e9:.6f}"
