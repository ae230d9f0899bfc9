"""Runs as a trace in the Trace Event Format, which Perfetto and chrome://tracing open.

A run is a process, and all runs lie on one axis: their stamps. In a process:

- a lane per trainer with what it worked on (`train`, and `withheld` while it was away); a piece of work that overlaps
  the one before it has a lane of its own below, so that it can't hide;
- lanes of the aggregator: `cycles`, `dispatches`, `commits`. What takes no logical time is drawn a microsecond long;
- async slices `in flight`, one an assign, from dispatch to the end of its slot;
- flows from a dispatch over the training to the commit that took it;
- counters: in flight, V, version.

Nothing measured is in it, so it is a function of the released sequence: the same run gives the same bytes, and the two
processes of an exact pair differ in nothing but their number and their name.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from flame.telemetry.rundir import RunDir
from flame.telemetry.slots import Slot, last_stamp, slots_of

Event = dict[str, Any]

CYCLES, DISPATCHES, COMMITS, FIRST_TRAINER = 1, 2, 3, 10
"""Thread numbers. 0 holds the counters."""
INSTANT = 1_000
"""How long in ns that is drawn which takes no time."""
ORDER = "MXbestfC"
"""Phases at one stamp: what encloses comes before what it encloses."""


@dataclass(frozen=True, slots=True)
class Lane:
    """One thread: its number, its name, the slots that are drawn in it."""

    tid: int
    name: str
    slots: tuple[Slot, ...]


def trace(runs: Sequence[RunDir]) -> str:
    """The trace of these runs as JSON, an event a line. Raises TelemetryError when one can't be read."""
    named = [{"pid": pid, "run": run.label, "world": run.world.kind, "run_fp": run.run_fp} for pid, run in enumerate(runs, 1)]
    lines = [orjson.dumps(event).decode() for pid, run in enumerate(runs, 1) for event in events(run, pid)]
    head = orjson.dumps({"axis": "stamps", "runs": named}).decode()
    return '{"displayTimeUnit":"ms","otherData":' + head + ',"traceEvents":[\n' + ",\n".join(lines) + "\n]}\n"


def events(run: RunDir, pid: int) -> list[Event]:
    """The events of one run, in the order in which they are written."""
    slots = slots_of(run)
    rounds = run.telemetry.frame("agg_round").sort("cycle", maintain_order=True).rows(named=True)
    lanes = _lanes(slots, run.condition.nodes)
    found = [*_work(lanes), *_cycles(rounds), *_commits(rounds), *_dispatches(slots), *_in_flight(slots, pid), *_flows(lanes, pid)]
    found += [*_held(slots, last_stamp(run)), *_counters(rounds)]
    found.sort(key=lambda event: (event["ts"], ORDER.index(event["ph"]), -event.get("dur", 0.0), event["tid"]))
    names = _names(f"{run.world.kind} {run.label}", lanes, pid)
    return [{"pid": pid} | event for event in (*names, *found)]


def _lanes(slots: Sequence[Slot], nodes: Sequence[str]) -> list[Lane]:
    """A lane per trainer, and one more for each depth of overlap."""
    own: dict[str, list[list[Slot]]] = {node: [[]] for node in nodes}
    for slot in slots:
        levels = own.setdefault(slot.trainer, [[]])
        free = next((level for level in levels if not level or level[-1].due <= slot.start), None)
        if free is None:
            free = []
            levels.append(free)
        free.append(slot)
    named = [(f"{node} (overlap)" if depth else node, level) for node, levels in own.items() for depth, level in enumerate(levels)]
    return [Lane(FIRST_TRAINER + number, name, tuple(level)) for number, (name, level) in enumerate(named)]


def _names(process: str, lanes: Sequence[Lane], pid: int) -> Iterator[Event]:
    threads = [(CYCLES, "cycles"), (DISPATCHES, "dispatches"), (COMMITS, "commits"), *((lane.tid, lane.name) for lane in lanes)]
    yield {"ph": "M", "tid": 0, "name": "process_name", "args": {"name": process}}
    yield {"ph": "M", "tid": 0, "name": "process_sort_index", "args": {"sort_index": pid}}
    for tid, name in threads:
        yield {"ph": "M", "tid": tid, "name": "thread_name", "args": {"name": name}}
        yield {"ph": "M", "tid": tid, "name": "thread_sort_index", "args": {"sort_index": tid}}


def _slice(tid: int, name: str, start: int, end: int, **args: Any) -> Event:
    return {"ph": "X", "tid": tid, "name": name, "ts": start / 1000, "dur": (end - start) / 1000, "args": args}


def _work(lanes: Sequence[Lane]) -> Iterator[Event]:
    for lane in lanes:
        for slot in lane.slots:
            place = {"id": slot.id, "version": slot.version, "data_id": slot.data_id, "iteration": slot.iteration}
            yield _slice(lane.tid, f"train v{slot.version}", slot.start, slot.done, **place)
            if slot.due > slot.done:
                yield _slice(lane.tid, "withheld", slot.done, slot.due, id=slot.id)


def _cycles(rounds: Sequence[Event]) -> Iterator[Event]:
    """Each cycle, from the close before it to its own."""
    start = 0
    for row in rounds:
        place = {name: row[name] for name in ("round", "data_id", "iteration", "goal", "concurrency")}
        yield _slice(CYCLES, f"cycle {row['cycle']}", start, max(start, row["stamp_ns"]), **place)
        start = max(start, row["stamp_ns"])


def _commits(rounds: Sequence[Event]) -> Iterator[Event]:
    long = _lengths({row["stamp_ns"] for row in rounds})
    for row in rounds:
        name = f"commit v{row['model_version'] + 1}" if row["committed"] else "keep"
        members = [member["trainer"] for member in row["cohort"]]
        told = {"cycle": row["cycle"], "reason": row["reason"], "cohort": members, "V": row["variance"]}
        yield _slice(COMMITS, name, row["stamp_ns"], row["stamp_ns"] + long[row["stamp_ns"]], **told)


def _dispatches(slots: Sequence[Slot]) -> Iterator[Event]:
    batches: dict[int, list[Slot]] = defaultdict(list)
    for slot in slots:
        batches[slot.start].append(slot)
    long = _lengths(batches.keys())
    for stamp, batch in batches.items():
        told = {"trainers": [slot.trainer for slot in batch], "payloads": [slot.payload for slot in batch]}
        yield _slice(DISPATCHES, f"dispatch {len(batch)}", stamp, stamp + long[stamp], **told)


def _lengths(stamps: Iterable[int]) -> dict[int, int]:
    """How long each instant is drawn: a microsecond, or to the next one."""
    ordered = sorted(stamps)
    return {one: min(INSTANT, two - one) for one, two in zip(ordered, [*ordered[1:], 1 << 62], strict=False)}


def _in_flight(slots: Sequence[Slot], pid: int) -> Iterator[Event]:
    for slot in slots:
        common = {"cat": "in flight", "id": f"{pid}.{slot.id}", "tid": 0, "name": slot.trainer}
        yield common | {"ph": "b", "ts": slot.start / 1000, "args": {"payload": slot.payload, "ending": slot.ending}}
        yield common | {"ph": "e", "ts": slot.end / 1000}


def _flows(lanes: Sequence[Lane], pid: int) -> Iterator[Event]:
    """Dispatch, training, commit; an update that no close took ends its flow where it was trained."""
    for lane in lanes:
        for slot in lane.slots:
            common = {"cat": "assign", "id": f"{pid}.{slot.id}", "name": "assign"}
            yield common | {"ph": "s", "tid": DISPATCHES, "ts": slot.start / 1000}
            if slot.closed is None:
                yield common | {"ph": "f", "bp": "e", "tid": lane.tid, "ts": slot.start / 1000}
            else:
                yield common | {"ph": "t", "tid": lane.tid, "ts": slot.start / 1000}
                yield common | {"ph": "f", "bp": "e", "tid": COMMITS, "ts": slot.closed / 1000}


def _counter(name: str, stamp: int, value: float) -> Event:
    return {"ph": "C", "tid": 0, "name": name, "ts": stamp / 1000, "args": {name: value}}


def _held(slots: Sequence[Slot], last: int) -> Iterator[Event]:
    """How many slots are held, after all that happens at a stamp; those that were never freed are held at the end."""
    changes: dict[int, int] = defaultdict(int)
    for slot in slots:
        changes[slot.start] += 1
        if slot.ending != "open":
            changes[slot.end] -= 1
    held = 0
    for stamp in sorted(changes.keys() | {last}):
        held += changes.get(stamp, 0)
        yield _counter("in flight", stamp, held)


def _counters(rounds: Sequence[Event]) -> Iterator[Event]:
    for number, row in enumerate(rounds):
        if not number:
            yield _counter("version", 0, row["model_version"])
        if row["variance"] is not None:
            yield _counter("V", row["stamp_ns"], row["variance"])
        if row["committed"]:
            yield _counter("version", row["stamp_ns"], row["model_version"] + 1)
