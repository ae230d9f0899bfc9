"""The roster: the ONE ledger of who is there, who works on what, and which slots are held.

A slot is held from dispatch until its update's cycle closes, or it is rejected, or voided; never
only until the update returns. Each row ends exactly once. A node that has a row is not free, so a
selector, which sees free nodes only, can't dispatch it twice. The roster alone computes `due`.

    free --dispatch--> open --take--> taken --close--> free
                       open --reject--> free
                       open --abandon--> owed: no slot any more, but still a row; taken or rejected like any other
                       open --leave--> (void; the node is gone)
                                     taken --leave--> taken, and gone at the close

Free are nodes without a row that are believed available. The update leaves, and `due` follows, at the trainer's next
available instant where its trace says so; a trace that ends away has none, and its node is retired.

Choosing among 10^5 free nodes must not cost 10^5 steps: `FreeNodes` indexes, adds and removes in
O(1). Its order is a function of the transitions alone, hence of the released sequence.

What a selector may know of a node (`flame.policies.select.view`) stands in its `Member`: it changes when
an update is taken, not when it arrives, so it too is a function of the released sequence.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from math import isfinite
from types import MappingProxyType
from typing import NamedTuple, overload

from flame.core.profile import Profile
from flame.core.progress import Progress
from flame.core.trace import Trace
from flame.roles.belief import Belief


class Legs(NamedTuple):
    """Of a modelled network, ns: until an assign has come to its trainer, and until the answer has come back."""

    down: int
    up: int


NO_LEGS = Legs(0, 0)


@dataclass(slots=True)
class Row:
    """One assignment. stamp, due, legs in ns; draw: assigns of this (version, bin) that the node had before."""

    id: int
    node: str
    stamp: int
    due: int
    version: int
    data_id: int
    iteration: int
    cycle: int
    draw: int
    payload: str
    legs: Legs = NO_LEGS
    owed: bool = False


@dataclass(slots=True)
class Member:
    """One node of the population. held: the last model version sent to it. row: what it works on.

    utility, last, count: U and cycle of its last taken update, and how many were taken. believed: available,
    as far as the aggregator knows. never: its trace ends away, nothing can come back from it.
    """

    profile: Profile
    held: int | None = None
    drawn_for: tuple[int, int] | None = None
    draws: int = 0
    row: Row | None = None
    gone: bool = False
    believed: bool = True
    never: bool = False
    utility: float = 0.0
    last: int = 0
    count: int = 0

    @property
    def idle(self) -> bool:
        """Has no row, and may get one."""
        return self.row is None and not self.gone and not self.never

    @property
    def duration(self) -> int:
        """Modelled duration D of one unit of work, ns."""
        return self.profile.duration()


class FreeNodes(Sequence[str]):
    """Selectable nodes, with O(1) index, add and remove, and an order-free fingerprint."""

    def __init__(self) -> None:
        self._nodes: list[str] = []
        self._place: dict[str, int] = {}
        self._marks: dict[str, int] = {}
        self._mark = 0

    def __len__(self) -> int:
        return len(self._nodes)

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        return self._nodes[place]

    def __iter__(self) -> Iterator[str]:
        return iter(self._nodes)

    def __contains__(self, node: object) -> bool:
        return node in self._place

    @property
    def fingerprint(self) -> str:
        """Sixteen hex digits that depend on the set, not on its order."""
        return f"{self._mark:016x}"

    def add(self, node: str) -> None:
        """Put a node at the end."""
        self._place[node] = len(self._nodes)
        self._nodes.append(node)
        mark = self._marks.get(node)
        if mark is None:
            mark = self._marks[node] = _mark(node)
        self._mark ^= mark

    def remove(self, node: str) -> None:
        """Take a node out; the last one takes its place. Raises KeyError if it isn't there."""
        place, last = self._place.pop(node), self._nodes.pop()
        if last != node:
            self._nodes[place], self._place[last] = last, place
        self._mark ^= self._marks[node]


def _mark(node: str) -> int:
    return int.from_bytes(blake2b(node.encode(), digest_size=8).digest(), "big")


class Roster:
    """The ledger. `ledger` is a running digest of its transitions, so that equal histories show as equal.

    unexplored: how many of the present ones had no update taken yet.
    in_flight: slots held. traces: availability by node; who has none is always there. belief: what is known of them.
    """

    def __init__(self, traces: Mapping[str, Trace] | None = None, belief: Belief | None = None) -> None:
        self.members: dict[str, Member] = {}
        self.unexplored = 0
        self.free = FreeNodes()
        self.open: dict[int, Row] = {}
        self.taken: dict[int, Row] = {}
        self.in_flight = 0
        self.ledger = b""
        self._traces = traces or {}
        self._belief = belief or Belief("none", {})
        self._next_id = 1

    @property
    def standings(self) -> Mapping[str, Member]:
        """The members, to be looked at."""
        return MappingProxyType(self.members)

    def join(self, node: str, profile: Profile, stamp: int = 0) -> None:
        """A node enters the population at `stamp`. Raises ValueError if it is in it."""
        if node in self.members:
            raise ValueError(f"`{node}` is in the roster already")
        member = self.members[node] = Member(profile, believed=self._belief.join(node, stamp))
        self.unexplored += 1
        if member.believed:
            self.free.add(node)
        self._note("join", node)

    def advance(self, stamp: int) -> None:
        """Believe what is so at `stamp`: who is back is free again, who has gone away is not."""
        for node, believed in self._belief.advance(stamp):
            member = self.members[node]
            if member.idle and believed != member.believed:
                (self.free.add if believed else self.free.remove)(node)
            member.believed = believed

    def next_free(self, stamp: int) -> int | None:
        """When one of those who are only away will be believed back; None if nobody is, or nobody ever will be.

        Looks at everybody: it is asked only when nobody can be chosen.
        """
        away = (node for node, member in self.members.items() if member.idle and not member.believed)
        return min((at for node in away if (at := self._belief.back(node, stamp)) is not None), default=None)

    def leave(self, node: str) -> Row | None:
        """A node is gone for good; its open row is voided and returned. A taken one counts to its close."""
        member = self.members.get(node)
        if member is None or member.gone:
            return None
        member.gone = True
        self.unexplored -= member.count == 0
        self._note("leave", node)
        if node in self.free:
            self.free.remove(node)
        row = self.open.pop(member.row.id, None) if member.row is not None else None
        if row is not None:
            member.row = None
            self.in_flight -= not row.owed
        return row

    def due(self, node: str, stamp: int, legs: Legs = NO_LEGS) -> int | None:
        """When an assign of `stamp` counts: it comes, takes D, leaves at once or when its trainer is back, and is up; None: never."""
        done = stamp + legs.down + self.members[node].duration
        trace = self._traces.get(node)
        leaves = done if trace is None else trace.next_available(done)
        return None if leaves is None else leaves + legs.up

    def expected(self) -> int:
        """When the last open row would be due if nobody were ever away; 0 without one."""
        rows = self.open.values()
        return max((row.stamp + row.legs.down + self.members[row.node].duration + row.legs.up for row in rows), default=0)

    def retire(self, node: str) -> None:
        """A free node from which nothing can come back: its trace ends away."""
        self.members[node].never = True
        self.free.remove(node)
        self._note("retire", node)

    def dispatch(self, node: str, stamp: int, progress: Progress, payload: str, legs: Legs = NO_LEGS) -> Row:
        """Open a row for a free node. Raises KeyError if the node isn't free, ValueError if it could never answer."""
        due = self.due(node, stamp, legs)
        if due is None:
            raise ValueError(f"`{node}` can never answer: its trace ends away")
        self.free.remove(node)
        member = self.members[node]
        bin_of_version = (progress.model_version, progress.data_id)
        member.draws = member.draws + 1 if member.drawn_for == bin_of_version else 0
        member.drawn_for = bin_of_version
        row = Row(
            self._next_id, node, stamp, due, progress.model_version, progress.data_id, progress.iteration,
            progress.cycle, member.draws, payload, legs,
        )  # fmt: skip
        self._next_id += 1
        if payload != "none":
            member.held = progress.model_version
        member.row = self.open[row.id] = row
        self.in_flight += 1
        self._note("dispatch", node)
        return row

    def abandon(self, id: int) -> Row:
        """Give up the slot of an open row; its update stays owed."""
        row = self.open[id]
        row.owed = True
        self.in_flight -= 1
        self._note("abandon", row.node)
        return row

    def take(self, id: int, cycle: int = 0, utility: float = 0.0) -> Row:
        """The update of an open row is accepted in `cycle`, with U; the slot is held until the close. A U that is no number is 0."""
        row = self.taken[id] = self.open.pop(id)
        member = self.members[row.node]
        self.unexplored -= member.count == 0
        member.utility, member.last = utility if isfinite(utility) else 0.0, cycle
        member.count += 1
        self._note("take", row.node)
        return row

    def reject(self, id: int) -> Row:
        """The update of an open row is refused; the slot and the node are free."""
        row = self.open.pop(id)
        self._release(row, "reject")
        return row

    def close(self, ids: Iterable[int]) -> None:
        """A cycle has closed: free the slots of its cohort in one batch."""
        for row_id in ids:
            self._release(self.taken.pop(row_id), "close")

    def _release(self, row: Row, how: str) -> None:
        member = self.members[row.node]
        member.row = None
        self.in_flight -= not row.owed
        if not member.gone and member.believed:
            self.free.add(row.node)
        self._note(how, row.node)

    def _note(self, what: str, node: str) -> None:
        self.ledger = blake2b(self.ledger + what.encode() + node.encode(), digest_size=8).digest()
