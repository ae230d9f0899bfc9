"""The slots of one run, read back from its telemetry: who worked on what, from when to when, in stamps.

A slot begins with a dispatch. It ends with the close that took its update, with its refusal, when it is given up
(abandoned), or with an intrusion or a planned departure that voids it; one that was still held lasts to the last
stamp of the run. Everything here is logical: two runs of the exact tier have equal slots.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import polars as pl

from flame.telemetry.rundir import RunDir

Ending = Literal["close", "reject", "abandon", "void", "open"]

READ = ("dispatch", "accepted", "withheld", "abandoned", "agg_round", "intrusion", "peer")
"""Records that are looked at."""


@dataclass(frozen=True, slots=True)
class Slot:
    """One assign. All times are stamps in ns.

    done: its work and its legs are over. due: when its update counts, later than `done` where its trainer was away.
    closed: the close that took its update, which may come after `end` when the slot was given up before.
    """

    id: int
    trainer: str
    version: int
    data_id: int
    iteration: int
    payload: str
    start: int
    done: int
    due: int
    end: int
    ending: Ending
    closed: int | None


def slots_of(run: RunDir) -> list[Slot]:
    """The slots of `run`, by stamp and id. Raises TelemetryError when the telemetry can't be read."""
    run.telemetry.load(*READ)
    closes, ends, last = _closes(run), _ends(run), last_stamp(run)
    columns = ("id", "trainer", "model_version", "data_id", "iteration", "payload", "stamp_ns", "delay_ns", "due_ns")
    slots: list[Slot] = []
    stamp: int
    ending: Ending
    for row in run.telemetry.frame("dispatch").select(columns).sort("stamp_ns", "id", maintain_order=True).iter_rows():
        key, trainer, version, data_id, iteration, payload, start, delay, due = row
        stamp, ending = min([*ends.get(key, ()), (last, "open")], key=lambda end: end[0])
        work = (key, trainer, version, data_id, iteration, payload)
        slots.append(Slot(*work, start, start + delay, due, max(start, stamp), ending, closes.get(key)))
    return slots


def last_stamp(run: RunDir) -> int:
    """The last stamp of the run's aggregator; 0 where it wrote none."""
    stamps = (run.telemetry.frame(kind)["_stamp_ns"].max() for kind in READ)
    return max((stamp for stamp in stamps if isinstance(stamp, int)), default=0)


def _closes(run: RunDir) -> dict[int, int]:
    """Id -> stamp of the close that took its update."""
    rounds = run.telemetry.frame("agg_round").select("cohort", "stamp_ns")
    return {member["id"]: stamp for cohort, stamp in rounds.iter_rows() for member in cohort}


def _ends(run: RunDir) -> dict[int, list[tuple[int, Ending]]]:
    """Id -> all that ended its slot, with stamps."""
    found: dict[int, list[tuple[int, Ending]]] = {key: [(stamp, "close")] for key, stamp in _closes(run).items()}
    for key, stamp, ending in _other_ends(run):
        found.setdefault(key, []).append((stamp, ending))
    for key, stamp in _departures(run):
        found.setdefault(key, [(stamp, "void")])
    return found


def _other_ends(run: RunDir) -> Iterator[tuple[int, int, Ending]]:
    """Refusals, slots that were given up, and rows that an intrusion voided."""
    frame = run.telemetry.frame
    for key, interval in frame("accepted").filter(~pl.col("accepted")).select("id", "interval_ns").iter_rows():
        yield key, interval[1], "reject"
    for key, stamp in frame("abandoned").select("id", "stamp_ns").iter_rows():
        yield key, stamp, "abandon"
    for voided, stamp in frame("intrusion").select("voided", "_stamp_ns").drop_nulls().iter_rows():
        yield from ((key, stamp, "void") for key in voided)


def _departures(run: RunDir) -> Iterator[tuple[int, int]]:
    """(id, stamp) of the assigns that a trainer had when it left as planned."""
    leaves = run.telemetry.frame("peer").filter(~pl.col("up") & pl.col("planned")).select("node", "_seq", "_stamp_ns").drop_nulls()
    assigns = run.telemetry.frame("dispatch").select("id", "trainer", "_seq")
    for node, seq, stamp in leaves.iter_rows():
        own = assigns.filter((pl.col("trainer") == node) & (pl.col("_seq") < seq))
        yield from ((key, stamp) for key in own["id"])
