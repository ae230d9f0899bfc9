"""The roster: the ONE ledger of who is there, who works on what, and which slots are held.

A slot is held from dispatch until its update's cycle closes, or it is rejected, or voided; never
only until the update returns. Each row ends exactly once. A node that has a row is not free, so a
selector, which sees free nodes only, can't dispatch it twice. The roster alone computes `due`.

    free --dispatch--> open --take--> taken --close--> free
                       open --reject--> free
                       open --leave--> (void; the node is gone)
                                     taken --leave--> taken, and gone at the close

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
from typing import overload

from flame.core.profile import Profile
from flame.core.progress import Progress


@dataclass(slots=True)
class Row:
    """One assignment. stamp, due in ns; draw: assigns of this (version, bin) that the node had before."""

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


@dataclass(slots=True)
class Member:
    """One node of the population. held: the last model version sent to it. row: what it works on.

    utility, last, count: U and cycle of its last taken update, and how many were taken.
    """

    profile: Profile
    held: int | None = None
    drawn_for: tuple[int, int] | None = None
    draws: int = 0
    row: Row | None = None
    gone: bool = False
    utility: float = 0.0
    last: int = 0
    count: int = 0

    @property
    def duration(self) -> int:
        """Modelled duration D of one unit of work, ns."""
        return self.profile.duration()


class FreeNodes(Sequence[str]):
    """Selectable nodes, with O(1) index, add and remove, and an order-free fingerprint."""

    def __init__(self) -> None:
        self._nodes: list[str] = []
        self._place: dict[str, int] = {}
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
        self._mark ^= _mark(node)

    def remove(self, node: str) -> None:
        """Take a node out; the last one takes its place. Raises KeyError if it isn't there."""
        place, last = self._place.pop(node), self._nodes.pop()
        if last != node:
            self._nodes[place], self._place[last] = last, place
        self._mark ^= _mark(node)


def _mark(node: str) -> int:
    return int.from_bytes(blake2b(node.encode(), digest_size=8).digest(), "big")


class Roster:
    """The ledger. `ledger` is a running digest of its transitions, so that equal histories show as equal.

    standings: the members, to be looked at. unexplored: how many of the present ones had no update taken yet.
    """

    def __init__(self) -> None:
        self.members: dict[str, Member] = {}
        self.standings: Mapping[str, Member] = MappingProxyType(self.members)
        self.unexplored = 0
        self.free = FreeNodes()
        self.open: dict[int, Row] = {}
        self.taken: dict[int, Row] = {}
        self.ledger = b""
        self._next_id = 1

    @property
    def in_flight(self) -> int:
        """Slots held."""
        return len(self.open) + len(self.taken)

    def join(self, node: str, profile: Profile) -> None:
        """A node enters the population and is free. Raises ValueError if it is in it."""
        if node in self.members:
            raise ValueError(f"`{node}` is in the roster already")
        self.members[node] = Member(profile)
        self.unexplored += 1
        self.free.add(node)
        self._note("join", node)

    def leave(self, node: str) -> Row | None:
        """A node is gone for good; its open row is voided and returned. A taken one counts to its close."""
        member = self.members.get(node)
        if member is None or member.gone:
            return None
        member.gone = True
        self.unexplored -= member.count == 0
        self._note("leave", node)
        if member.row is None:
            self.free.remove(node)
            return None
        row = self.open.pop(member.row.id, None)
        if row is not None:
            member.row = None
        return row

    def dispatch(self, node: str, stamp: int, progress: Progress, payload: str) -> Row:
        """Open a row for a free node: its id, and its due = stamp + D. Raises KeyError if the node isn't free."""
        self.free.remove(node)
        member = self.members[node]
        bin_of_version = (progress.model_version, progress.data_id)
        member.draws = member.draws + 1 if member.drawn_for == bin_of_version else 0
        member.drawn_for = bin_of_version
        row = Row(
            self._next_id, node, stamp, stamp + member.profile.duration(), progress.model_version, progress.data_id,
            progress.iteration, progress.cycle, member.draws, payload,
        )  # fmt: skip
        self._next_id += 1
        if payload != "none":
            member.held = progress.model_version
        member.row = self.open[row.id] = row
        self._note("dispatch", node)
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
        if not member.gone:
            self.free.add(row.node)
        self._note(how, row.node)

    def _note(self, what: str, node: str) -> None:
        self.ledger = blake2b(self.ledger + what.encode() + node.encode(), digest_size=8).digest()
