"""The inbox: it turns arrivals, which come in any order, into one sequence of released rows.

Everything that can change a decision is a row of the due set, with a key (stamp, rank, node, id).
A row is released when it is the least one and has arrived, one at a time; while a lesser row is
still out, everything above it waits. So in stamp order the released sequence, and with it every
decision, is a function of the condition alone: neither jitter nor speed nor the world can be seen
in it. It waits for messages; it never waits on a guess.

In arrival order (the fidelity tier) a row is stamped when it arrives: max(frontier, now). Nothing
waits then, and the sequence is whatever the wild gave.

Rules (time-and-order.md, section 1):
  - ids are compared as numbers, nodes as names; the aggregator's own rows have the node "";
  - a row ends at its release, or by void; what arrives for a row that has ended is refused here;
  - the frontier is the stamp of the last released row and never falls.
"""

from heapq import heappop, heappush
from typing import Any, Literal

from flame.core.events import TimerKey

STOP, FAULT, JOIN, EVAL, TIMER, UPDATE = range(6)
"""Ranks: what comes first among rows of one stamp."""

RANKS = ("stop", "fault", "join", "evaluation", "timer", "update")
"""Their names, for people."""

OWN = ""
"""The node of the aggregator's own rows."""

Handle = tuple[int, str, int]
"""(rank, node, id): names a row, whatever its stamp."""

Key = TimerKey
"""(stamp, rank, node, id): orders the rows, and names a stamped timer."""


class Inbox:
    """The due set of one aggregator."""

    def __init__(self, order: Literal["stamp", "arrival"]) -> None:
        self.frontier = 0
        self._stamps_on_arrival = order == "arrival"
        self._heap: list[Key] = []
        self._due: dict[Handle, Key] = {}
        self._arrived: dict[Handle, Any] = {}

    def __len__(self) -> int:
        """Rows that are out or have not been released."""
        return len(self._due)

    def key(self, handle: Handle) -> Key | None:
        """The key of an open row; None if there is none."""
        return self._due.get(handle)

    def expect(self, key: Key) -> None:
        """Add a row. Raises ValueError if its handle is open, or its stamp lies behind the frontier."""
        if key[1:] in self._due:
            raise ValueError(f"row {key[1:]} is in the due set already")
        if key[0] < self.frontier:
            raise ValueError(f"row {key} lies behind the frontier {self.frontier}")
        self._due[key[1:]] = key
        if not self._stamps_on_arrival:
            heappush(self._heap, key)

    def arrive(self, handle: Handle, content: Any, now: int) -> bool:
        """Hand in what a row waits for. False: no such row (ended, voided, or never there), or it has arrived before."""
        if handle not in self._due or handle in self._arrived:
            return False
        self._arrived[handle] = content
        if self._stamps_on_arrival:
            key = self._due[handle] = (max(self.frontier, now), *handle)
            heappush(self._heap, key)
        return True

    def void(self, handle: Handle) -> None:
        """Give a row up for good. Raises KeyError if there is none."""
        del self._due[handle]
        self._arrived.pop(handle, None)

    def keep_only(self, rank: int) -> None:
        """Void every row of another rank."""
        for handle in [handle for handle in self._due if handle[0] != rank]:
            self.void(handle)

    def release(self) -> tuple[Key, Any] | None:
        """The least row and its content, if it has arrived; None while it is still out."""
        key = self.least()
        if key is None or key[1:] not in self._arrived:
            return None
        heappop(self._heap)
        del self._due[key[1:]]
        self.frontier = max(self.frontier, key[0])
        return key, self._arrived.pop(key[1:])

    def least(self) -> Key | None:
        """The row that everything waits for."""
        while self._heap and self._due.get(self._heap[0][1:]) != self._heap[0]:
            heappop(self._heap)
        return self._heap[0] if self._heap else None

    def can_advance(self) -> bool:
        """Whether a row other than a stop is left, whose release could change something."""
        return any(rank != STOP for rank, _, _ in self._due)
