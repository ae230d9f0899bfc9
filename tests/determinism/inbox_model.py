"""The inbox, specified as a program that can be run.

Theory of operation. A *decision* (accept, close, commit, dispatch, stop) is a function of the
released sequence alone. Whatever can change a decision is a *row* of the due set, keyed `(stamp,
rank, node, id)`. A row is released when it is the least one and has arrived; until then the inbox
waits, however long the wall takes, because lateness is never silence. So two worlds that deliver
the same rows, in any raw order and at any wall time, decide alike.

Slots. A trainer holds its slot from dispatch until exactly one of *close* (a cycle that took its
update closes), *reject* (released and refused), *abandon* (given up, the update stays *owed*) or
*void* (the row is given up for good). A node with anything unfinished is not selectable.

Cycles. K accepts close a cycle. A close need not *commit*: the gate may keep the bin going, whose
uploads stay pooled while the version stands still. K and C are sampled when a cycle begins, and a
sampled K is clamped to C. An async loop refills to C at every decision and carries what it accepted
beyond K; a sync loop may dispatch C assigns in a cycle, one more for each member that it loses.

Each rule is a field of `Rules`, and `test_inbox_model.py` shows what goes wrong without it. Time is
integer milliseconds. The machine sees `now` and never decides by it, unless a rule is dropped.

Here are the rules, the vocabulary and the inbox; `inbox_machine.py` is the aggregator around it, and
`inbox_worlds.py` the two worlds that try it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import Enum, IntEnum, auto
from typing import NamedTuple

NEVER = 2**62


def derive(*path: object) -> int:
    """A draw that depends on its path only, so no generator can fall out of step."""
    return int.from_bytes(hashlib.blake2b(repr(path).encode(), digest_size=8).digest(), "big")


@dataclass(frozen=True)
class Rules:
    """What keeps the two worlds equal: one switch per rule, all of them on."""

    # A row of this kind waits for its turn; without the rule it acts when it arrives.
    stop_is_a_row: bool = True
    fault_is_a_row: bool = True
    join_is_a_row: bool = True
    eval_is_a_row: bool = True
    timer_is_a_row: bool = True
    update_is_a_row: bool = True
    # Rows of one stamp go by (rank, node, id); without the rule, by arrival.
    ties_go_by_key: bool = True
    # Decide after each release; without the rule, once after releasing all that is ready.
    one_release_one_decision: bool = True
    # An update finds its row by assign id; without the rule, by the node that sent it.
    keyed_by_assign: bool = True
    # Belief is a function of trace and stamp; without the rule, what was last notified.
    belief_is_pure: bool = True
    # When nobody can be chosen, a row stands where belief next changes.
    wake_is_set: bool = True
    # An assign carries the stamp of its cause; without the rule, the sender's `now`.
    stamped_by_cause: bool = True
    # A straggler is judged when it is released; without the rule, when it arrives.
    judged_at_release: bool = True
    # A node that owes an update is not selectable.
    owed_is_busy: bool = True
    # A node whose trace ends away, so that its due is never, is refused at dispatch.
    never_is_refused: bool = True
    # K and C are sampled when a cycle begins; without the rule, whenever something arrives.
    sampled_at_start: bool = True
    # A sampled K is at most C.
    goal_is_clamped: bool = True
    # A sync cohort asks for one more when it loses a member.
    lost_is_replaced: bool = True
    # The gate commits at the latest after so many iterations.
    commit_is_capped: bool = True
    # The session layer sends an open assign again until it is answered.
    open_is_resent: bool = True
    # A peer is silent when its heartbeat stops; without the rule, when its update is late.
    late_is_not_silent: bool = True


class Rank(IntEnum):
    """What goes first among rows of one stamp."""

    STOP = 0
    FAULT = 1
    JOIN = 2
    EVAL = 3
    TIMER = 4
    UPDATE = 5


class Name(NamedTuple):
    """What an arrival can say about its row; the stamp is the inbox's own knowledge."""

    rank: Rank
    node: str  # empty for the aggregator's own rows
    id: int  # compared as a number


class Row(NamedTuple):
    """An entry of the due set. It ends at its release, or by void."""

    stamp: int
    rank: Rank
    node: str
    id: int

    @property
    def name(self) -> Name:
        return Name(self.rank, self.node, self.id)


class Progress(NamedTuple):
    """How far training is; only a close advances it."""

    round: int = 0
    data_id: int = 0
    iteration: int = 0
    version: int = 0

    def kept(self) -> Progress:
        """After a close without a commit: the same bin and the same weights, once more."""
        return self._replace(iteration=self.iteration + 1)

    def committed(self, bins: int) -> Progress:
        """After a commit: the next bin, and after the last one the next round."""
        lap, data_id = divmod(self.data_id + 1, bins)
        return Progress(self.round + lap, data_id, 0, self.version + 1)


class Assign(NamedTuple):
    """One piece of work. The update echoes all of it."""

    id: int
    node: str
    stamp: int
    due: int
    at: Progress


# Events: what happened. A world says them as they come, in any order.


class Arrived(NamedTuple):
    """A row's own event: an update, an eval result, a fired timer, a peer up or down."""

    name: Name
    echo: Assign | None = None


class Noted(NamedTuple):
    """A trainer says whether it is available. Telemetry, while belief is pure."""

    node: str
    available: bool


class Overdue(NamedTuple):
    """The grace of an assign, counted from its due, is over. No evidence of silence."""

    name: Name


# Effects: what shall be done. The world owns the clock, the links and the computing.


class Send(NamedTuple):
    assign: Assign


class SetTimer(NamedTuple):
    row: Row


class Evaluate(NamedTuple):
    row: Row


Event = Arrived | Noted | Overdue
Effect = Send | SetTimer | Evaluate


class Awareness(Enum):
    """What the selector is granted to know about availability."""

    UNAWARE = auto()
    NOTIFIED = auto()
    ORACULAR = auto()


class Staleness(Enum):
    """Which updates of an earlier cycle still count."""

    EXACT = auto()
    SAME_BIN = auto()
    ACCEPT = auto()

    def judge(self, done: Progress, at: Progress) -> int | None:
        """How many commits behind an acceptable update is; None refuses it."""
        behind = at.version - done.version
        if self is Staleness.EXACT and (behind, done.iteration) != (0, at.iteration):
            return None
        return None if self is Staleness.SAME_BIN and behind else behind


@dataclass(frozen=True)
class Condition:
    """All that both worlds share: who takes part, when, how fast, under which policies."""

    seed: int
    start: tuple[str, ...]
    delay: dict[str, int]  # modelled D of each node
    trace: dict[str, tuple[int, ...]]  # stamps at which a node, at first available, toggles
    joins: dict[str, int]
    faults: dict[str, int]
    awareness: Awareness
    sync: bool
    staleness: Staleness
    threshold: int | None  # of the gate's variance; None commits at every close
    cap: int
    goals: tuple[int, int]  # K is drawn from here at each cycle
    concurrencies: tuple[int, int]  # and C from here
    abandon: int | None
    eval_time: int
    eval_blocks: bool
    commits: int
    budget: int | None
    bins: int = 4

    def __post_init__(self) -> None:
        if self.goals[1] > min(self.concurrencies[1], len(self.delay)):
            raise ValueError(f"K of {self.goals} exceeds C or N: no cycle could close")

    def sample(self, which: str, bounds: tuple[int, int], cycle: int, *more: int) -> int:
        low, high = bounds
        return low + derive(self.seed, which, cycle, *more) % (high - low + 1)

    def available(self, node: str, stamp: int) -> bool:
        return sum(toggle <= stamp for toggle in self.trace[node]) % 2 == 0

    def next_available(self, node: str, stamp: int) -> int:
        """The first stamp from here on at which the node is available, or NEVER."""
        later = [toggle for toggle in self.trace[node] if toggle > stamp]
        return stamp if self.available(node, stamp) else min(later, default=NEVER)

    def believed(self, node: str, stamp: int) -> bool:
        """May the selector count on the node at this stamp?"""
        if self.awareness is Awareness.UNAWARE:
            return True
        ends = [stamp] if self.awareness is Awareness.NOTIFIED else [stamp, stamp + self.delay[node]]
        return all(self.available(node, end) for end in ends)

    def belief_changes(self, node: str, stamp: int) -> int:
        """The next stamp at which `believed` may differ, or NEVER."""
        if self.awareness is Awareness.UNAWARE:
            return NEVER
        ahead = self.delay[node] if self.awareness is Awareness.ORACULAR else 0
        edges = [edge for t in self.trace[node] for edge in (t - ahead, t) if edge > stamp]
        return min(edges, default=NEVER)


class Held(NamedTuple):
    """What an arrived row brings to its release."""

    echo: Assign | None
    staleness: int | None  # as judged at the arrival; counts only if that rule is dropped


class Inbox:
    """The due set, and what of it has arrived. Knows nothing of slots or cycles."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.rows: dict[Name, Row] = {}
        self.arrived: dict[Name, Held] = {}  # in order of arrival
        self.strays = 0
        waits = {rank: getattr(rules, f"{rank.name.lower()}_is_a_row") for rank in Rank}
        self.queued = frozenset(rank for rank, it_waits in waits.items() if it_waits)

    def expect(self, row: Row) -> None:
        assert row.name not in self.rows, f"{row} is expected twice"
        self.rows[row.name] = row

    def void(self, name: Name) -> None:
        """Give a row up for good; whatever still arrives for it is a stray."""
        self.rows.pop(name, None)
        self.arrived.pop(name, None)

    def arrive(self, name: Name, held: Held) -> None:
        if name.rank is Rank.UPDATE and not self.rules.keyed_by_assign:
            own = [n for n in self.rows if (n.rank, n.node) == (name.rank, name.node)]
            name = min(own, default=name)
        if name not in self.rows or name in self.arrived:
            self.strays += 1  # a duplicate, a cancelled timer, an answer to a voided assign
        else:
            self.arrived[name] = held

    def release(self) -> tuple[Row, Held] | None:
        """Take out the least row if it has arrived; None while it is still out."""
        row = self._unqueued() or self._least()
        if row is None or row.name not in self.arrived:
            return None
        return self.rows.pop(row.name), self.arrived.pop(row.name)

    def _unqueued(self) -> Row | None:
        return next((self.rows[n] for n in self.arrived if n.rank not in self.queued), None)

    def _least(self) -> Row | None:
        least = min((r for r in self.rows.values() if r.rank in self.queued), default=None)
        if least is None or self.rules.ties_go_by_key:
            return least
        tied = (self.rows[n] for n in self.arrived if self.rows[n].stamp == least.stamp)
        return next(tied, least)
