"""Whether a cycle's goal can be reached under the traces: what a run would find out for itself (STARVED), said before it.

A cycle closes at K accepts of K trainers, because who was taken keeps its slot until then. So K needs
as many trainers that are ever there: with fewer the run ends in its first cycle. If there are K of them, but never
K at one instant, a synchronous cycle can only fill by waiting for one after another.

Traces repeat, so a lap of each is all that there is; traces of several laps are looked at up to the longest one.
"""

from collections.abc import Mapping
from itertools import islice

from flame.core.trace import Trace
from flame.policies.select import Select
from flame.policies.select.oort import Scored

LOOKED_AT = 5_000
"""Traces that are made for this at most: making one takes a millisecond or more."""


def ever_there(traces: Mapping[str, Trace], wanted: int) -> int:
    """How many trainers train at some time; counting ends at `wanted`."""
    return sum(1 for _ in islice((node for node, trace in traces.items() if trace.next_available(0) is not None), wanted))


def at_once(traces: Mapping[str, Trace], wanted: int) -> int:
    """The most trainers that train at one instant of the longest lap; the search ends at `wanted`."""
    horizon = max((trace.period or trace.instants[-1] for trace in traces.values()), default=0)
    changes: list[tuple[int, int]] = []
    now = 0
    for trace in traces.values():
        there = trace.available(0)
        now += there
        if now >= wanted:
            return wanted
        at = trace.next_change(0)
        while at is not None and at <= horizon:
            if trace.available(at) != there:
                there = not there
                changes.append((at, 1 if there else -1))
            at = trace.next_change(at)
    most = now
    for _, change in sorted(changes):
        now += change
        most = max(most, now)
    return min(most, wanted)


def not_barred(select: Select, trainers: int) -> int:
    """Of `trainers`, how many are left to choose from when the blacklist is full; all, where there is none."""
    if not isinstance(select, Scored) or select.blacklist is None:
        return trainers
    return trainers - int(select.blacklist_share * trainers)
