"""Who can be used when, as the condition's traces say, at the stamps that a run gave to its closes.

Trainers say nothing of their states: the trace is theirs by definition, and a run differs from its twin in
*when*, by its stamps, it got how far. So the states at a run's closes, and the time in each state up to the last
common one, are what its progress makes of the traces. What the runs did with them is another question (A6, A7).

Of many trainers a spread of `WATCHED` is looked at, of many closes one of `INSTANTS`.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from flame.config.availability import traces
from flame.config.errors import ConfigError
from flame.core.trace import State, Trace
from parity.evidence import Pair, Run, Window

STATES: tuple[State, ...] = ("AVL_TRAIN", "AVL_EVAL", "UN_AVL")
WATCHED = INSTANTS = 200

NO_TIME = 1 << 62
"""An instant that never comes."""

Shares = dict[State, float]
Item = TypeVar("Item")


def unwatched(pair: Pair) -> str | None:
    """Why there is no availability to look at; None where there is."""
    trace = pair.condition.availability.trace
    return f"nobody is ever away (`availability.trace: {trace}`)" if trace == "syn_0" else None


def traces_of(run: Run) -> Mapping[str, Trace]:
    """The traces of its condition, by node. Raises ConfigError where their file isn't here. For `run.derived`."""
    return traces(run.condition)


def known_traces(run: Run) -> Mapping[str, Trace] | None:
    """The trace of each trainer; None where everybody is always there, or where the file of traces isn't."""
    if run.condition.availability.trace == "syn_0":
        return None
    try:
        return traces(run.condition)
    except ConfigError:
        return None


def available_at(trace: Trace, stamps: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether a device can train at each of these stamps."""
    within = stamps if trace.period is None else stamps % trace.period
    trains = np.array([state == "AVL_TRAIN" for state in trace.states])
    return np.asarray(trains[np.searchsorted(np.array(trace.instants), within, side="right") - 1])


def next_available_at(trace: Trace, stamps: NDArray[np.int64]) -> NDArray[np.int64]:
    """The earliest instant from each of these stamps on at which a device can train, `NO_TIME` for never."""
    starts = [instant for instant, state in zip(trace.instants, trace.states, strict=True) if state == "AVL_TRAIN"]
    within = stamps if trace.period is None else stamps % trace.period
    after = [trace.period + starts[0] if trace.period is not None and starts else NO_TIME]
    later = np.array(starts + after)[np.searchsorted(np.array(starts, np.int64), within)]
    return np.where(available_at(trace, stamps), stamps, np.where(later == NO_TIME, NO_TIME, stamps - within + later))


def watched(run: Run) -> dict[str, Trace]:
    """The traces that are looked at."""
    known = run.derived(traces_of)
    return {node: known[node] for node in spread(run.condition.nodes, WATCHED)}


def spread(items: Sequence[Item], most: int) -> list[Item]:
    """At most that many of `items`, evenly, the last one among them."""
    if len(items) <= most:
        return list(items)
    return [items[(number + 1) * len(items) // most - 1] for number in range(most)]


def closes(run: Run, window: Window, most: int = INSTANTS) -> list[tuple[int, int]]:
    """(cycle, stamp) of common closes of `run`, at most that many, evenly."""
    return spread(window.in_cycles(run.rounds).select("cycle", "stamp_ns").drop_nulls().rows(), most)


def composition(run: Run, window: Window) -> list[Shares]:
    """The share of trainers in each state, at the closes that are looked at."""
    held = watched(run)
    states = [[trace.state(stamp) for trace in held.values()] for _, stamp in closes(run, window)]
    return [{state: row.count(state) / len(row) for state in STATES} for row in states]


def span_of(run: Run, window: Window) -> int:
    """The stamp of the last common close."""
    last = window.in_cycles(run.rounds)["stamp_ns"].max()
    return last if isinstance(last, int) else 0


def time_in_state(run: Run, window: Window) -> dict[str, Shares]:
    """Node -> the share of time that it was in each state, from stamp 0 to the last common close."""
    end = max(1, span_of(run, window))
    return {node: _shares(trace, end) for node, trace in watched(run).items()}


def _shares(trace: Trace, end: int) -> Shares:
    """Of [0, end): whole laps are counted once."""
    laps, rest = divmod(end, trace.period) if trace.period else (0, end)
    whole = _spent(trace, trace.period or 0)
    part = _spent(trace, rest)
    return {state: (laps * whole[state] + part[state]) / end for state in STATES}


def _spent(trace: Trace, end: int) -> dict[State, int]:
    """ns in each state in [0, end), within one lap."""
    spent: dict[State, int] = dict.fromkeys(STATES, 0)
    last = bisect_left(trace.instants, end)
    for place, begin in enumerate(trace.instants[:last]):
        after = trace.instants[place + 1] if place + 1 < last else end
        spent[trace.states[place]] += after - begin
    return spent


def total_variation(one: Mapping[State, float], other: Mapping[State, float]) -> float:
    """Half the sum of the differences of shares."""
    return sum(abs(one[state] - other[state]) for state in STATES) / 2


def dispatched(run: Run, window: Window) -> pl.DataFrame:
    """The assigns of the common cycles, in order."""
    return window.in_cycles(run.frame("dispatch")).sort("_seq")
