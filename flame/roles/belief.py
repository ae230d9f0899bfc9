"""Belief: who the aggregator takes to be available, at a stamp.

A pure function of the traces, the awareness policy and the stamp; never of a notification that
arrived. So it is the same in both worlds, and in a replay.

  none       everybody is believed available; who is away answers when it is back
  oracular   the trace's state at the stamp
  notified   the same instants, told by the trainers; what was told on the wire is telemetry

It advances with the stamps: what has changed since the last one is handed out once, in the order of
(instant, node). A change costs O(log n), whoever looks.
"""

from collections.abc import Mapping
from heapq import heappop, heappush
from typing import Literal

from flame.core.trace import Trace

Awareness = Literal["none", "oracular", "notified"]


class Belief:
    """The believed state of each node of the population."""

    def __init__(self, awareness: Awareness, traces: Mapping[str, Trace]) -> None:
        self._traces = {} if awareness == "none" else traces
        self._changes: list[tuple[int, str]] = []

    def join(self, node: str, stamp: int) -> bool:
        """A node enters the population at `stamp`; whether it is believed available then."""
        trace = self._traces.get(node)
        if trace is None:
            return True
        self._watch(node, trace, stamp)
        return trace.available(stamp)

    def advance(self, stamp: int) -> list[tuple[str, bool]]:
        """Nodes whose trace has changed up to `stamp`, each with what is believed of it then."""
        changed: dict[str, bool] = {}
        while self._changes and self._changes[0][0] <= stamp:
            at, node = heappop(self._changes)
            trace = self._traces[node]
            changed[node] = trace.available(at)
            self._watch(node, trace, at)
        return list(changed.items())

    def back(self, node: str, stamp: int) -> int | None:
        """The next instant at which `node` will be believed available; None if it never will."""
        trace = self._traces.get(node)
        return stamp if trace is None else trace.next_available(stamp)

    def _watch(self, node: str, trace: Trace, stamp: int) -> None:
        at = trace.next_change(stamp)
        if at is not None:
            heappush(self._changes, (at, node))
