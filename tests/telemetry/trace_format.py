"""The rules of the Trace Event Format, as far as a viewer relies on them. `faults` says what breaks one.

After "Trace Event Format" (Duffin, Google, 2016) and what Perfetto's importer drops: slices of a thread nest, async
slices are closed once, a flow begins before it steps and ends, and each of its events lies in a slice.
"""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

Event = dict[str, Any]

META = {"process_name": "name", "process_sort_index": "sort_index", "thread_name": "name", "thread_sort_index": "sort_index"}
PHASES = set("MXbestfC")


def faults(trace: dict[str, Any]) -> list[str]:
    """What is wrong with a trace; nothing with one that a viewer shows whole."""
    events = trace["traceEvents"]
    found = [*_shapes(events)]
    return found or [*_slices(events), *_async(events), *_flows(events), *_counters(events), *_lanes(events)]


def ns(event: Event, name: str = "ts") -> int:
    """A time of an event in ns, as a viewer reads it."""
    return round(event[name] * 1000)


def end(event: Event) -> int:
    """The end of a slice in ns."""
    return ns(event) + ns(event, "dur")


def _shapes(events: list[Event]) -> Iterator[str]:
    last: dict[int, float] = {}
    for number, event in enumerate(events):
        where = f"event {number}"
        if event.get("ph") not in PHASES:
            yield f"{where}: unknown phase {event.get('ph')}"
            continue
        if not all(isinstance(event.get(name), int) for name in ("pid", "tid")) or not isinstance(event.get("name"), str):
            yield f"{where}: no pid, tid or name"
        if event["ph"] == "M":
            if not isinstance(event["args"].get(META.get(event["name"], "?")), str | int):
                yield f"{where}: metadata {event['name']} without its argument"
            continue
        if not isinstance(event.get("ts"), float | int) or event["ts"] < 0:
            yield f"{where}: no time"
            continue
        if event["ph"] == "X" and not event.get("dur", -1) >= 0:
            yield f"{where}: a slice without a length"
        if event["ph"] in "bestf" and not all(isinstance(event.get(name), str) for name in ("cat", "id")):
            yield f"{where}: no category or id"
        if event["ts"] < last.get(event.get("pid", 0), 0.0):
            yield f"{where}: earlier than the one before it"
        last[event.get("pid", 0)] = event["ts"]


def _slices(events: list[Event]) -> Iterator[str]:
    open_now: dict[tuple[int, int], list[Event]] = defaultdict(list)
    for event in events:
        if event["ph"] != "X":
            continue
        stack = open_now[event["pid"], event["tid"]]
        while stack and end(stack[-1]) <= ns(event):
            stack.pop()
        if stack and end(event) > end(stack[-1]):
            yield f"slice `{event['name']}` at {event['ts']} ends after `{stack[-1]['name']}`, in which it began"
        stack.append(event)


def _async(events: list[Event]) -> Iterator[str]:
    open_now: dict[tuple[str, str], Event] = {}
    for event in events:
        key = (event.get("cat", ""), event.get("id", ""))
        if event["ph"] == "b":
            if key in open_now:
                yield f"async slice {key} began twice"
            open_now[key] = event
        elif event["ph"] == "e":
            begun = open_now.pop(key, None)
            if begun is None or (begun["name"], begun["pid"]) != (event["name"], event["pid"]):
                yield f"async slice {key} ended, and didn't begin so"
    yield from (f"async slice {key} never ended" for key in open_now)


def _flows(events: list[Event]) -> Iterator[str]:
    flows: dict[tuple[str, str, str], list[Event]] = defaultdict(list)
    for event in events:
        if event["ph"] in "stf":
            flows[event["cat"], event["id"], event["name"]].append(event)
    homes = defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            homes[event["pid"], event["tid"]].append(event)
    for key, steps in flows.items():
        phases = "".join(step["ph"] for step in steps)
        if phases not in ("sf", "stf"):
            yield f"flow {key} is {phases}"
        for step in steps:
            if not any(ns(home) <= ns(step) <= end(home) for home in homes[step["pid"], step["tid"]]):
                yield f"flow {key}: `{step['ph']}` at {step['ts']} lies in no slice"


def _counters(events: list[Event]) -> Iterator[str]:
    for event in events:
        if event["ph"] == "C" and not (event["args"] and all(isinstance(value, int | float) for value in event["args"].values())):
            yield f"counter `{event['name']}` at {event['ts']} has no number"


def _lanes(events: list[Event]) -> Iterator[str]:
    named = {(event["pid"], event["tid"]) for event in events if event["name"] == "thread_name"}
    processes = {event["pid"] for event in events if event["name"] == "process_name"}
    used = {(event["pid"], event["tid"]) for event in events if event["ph"] in "Xstf"}
    yield from (f"lane {lane} has no name" for lane in sorted(used - named))
    yield from (f"process {pid} has no name" for pid in sorted({event["pid"] for event in events} - processes))
