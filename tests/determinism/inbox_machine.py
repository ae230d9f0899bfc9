"""The aggregator that the inbox serves: slots, cycles, the gate, and who is sent what.

Theory of operation. Each step puts what arrived into the inbox and then, as long as the least row
is there, takes one release and one decision. A release changes the ledger, the roster or the
accepted updates; a decision closes the cycles that are full and then refills the slots. Nothing
else closes or dispatches, and whatever either does is logged with the frontier it was done at.
`inbox_model.py` states the rules.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, NamedTuple

from .inbox_model import (
    NEVER,
    Arrived,
    Assign,
    Awareness,
    Condition,
    Effect,
    Evaluate,
    Event,
    Held,
    Inbox,
    Name,
    Noted,
    Overdue,
    Progress,
    Rank,
    Row,
    Rules,
    Send,
    SetTimer,
    derive,
)


class Line(NamedTuple):
    """One line of the log: the frontier, what was released or decided then, and its details."""

    frontier: int
    what: str
    details: tuple[Any, ...]


@dataclass
class Entry:
    """The ledger's line for one assign, from dispatch until its slot and its row have ended."""

    assign: Assign
    cycle: int
    row: Name | None  # the open row; None once released
    holds_slot: bool = True
    abandon: Name | None = None


class Upload(NamedTuple):
    """An accepted update."""

    entry: Entry
    echo: Assign
    staleness: int


class Aggregator:
    """The machine: `step(now, event) -> effects`, and a log of every release and decision."""

    def __init__(self, condition: Condition, rules: Rules) -> None:
        self.condition, self.rules, self.inbox = condition, rules, Inbox(rules)
        self.now = self.frontier = self.eval_floor = 0
        self.progress, self.cycle = Progress(), 0
        self.roster = set(condition.start)
        self.known = {node: condition.available(node, 0) for node in condition.delay}
        self.ledger: dict[int, Entry] = {}
        self.accepted: list[Upload] = []  # not yet in a closed cycle
        self.bin: list[Upload] = []  # pooled by the cycles of the open bin
        self.wake: Row | None = None
        self.serial = self.picks = 0
        # Of the open cycle: K, C, what a sync loop may still dispatch, updates released so far.
        self.goal = self.concurrency = self.quota = self.taken = 0
        self.stopped: str | None = None
        self.effects: list[Effect] = []
        self.log: list[Line] = []
        self.counts: Counter[str] = Counter()
        self._begin_cycle()

    def begin(self) -> list[Effect]:
        """`ready`: every node of the start is here, and `now` and the frontier are 0."""
        for rank, planned in (Rank.JOIN, self.condition.joins), (Rank.FAULT, self.condition.faults):
            for node, stamp in planned.items():
                self.inbox.expect(Row(stamp, rank, node, 0))
        if self.condition.budget is not None:
            # The first row beyond the budget isn't released; one that meets it to the tick is.
            self._set_timer(Row(self.condition.budget + 1, Rank.STOP, "", 0))
        self._decide()
        return self._take_effects()

    def step(self, now: int, event: Event) -> list[Effect]:
        """Take in what happened, release what is ready, and say what shall be done."""
        self.now = now
        match event:
            case Arrived(name, echo):
                self.inbox.arrive(name, Held(echo, self._judge(echo)))
                if not self.rules.sampled_at_start:
                    self.counts["arrivals"] += 1
                    self._sample(self.counts["arrivals"])
            case Noted(node, available):
                self._on_note(node, available)
            case Overdue(name):
                self._on_overdue(name)
        self._drain()
        return self._take_effects()

    def _take_effects(self) -> list[Effect]:
        taken, self.effects = self.effects, []
        return taken

    def _drain(self) -> None:
        undecided = False
        while not self.stopped and (released := self.inbox.release()):
            self._on_release(*released)
            undecided = not self.rules.one_release_one_decision
            if not undecided:
                self._decide()
        if undecided:
            self._decide()

    # Releases.

    def _on_release(self, row: Row, held: Held) -> None:
        self.frontier = max(self.frontier, row.stamp)
        self._record("released", row)
        match row.rank:
            case Rank.STOP:
                self._stop("budget")
            case Rank.FAULT:
                self._on_fault(row.node)
            case Rank.JOIN:
                self.roster.add(row.node)
            case Rank.EVAL:
                self._on_eval(version=row.id)
            case Rank.TIMER:
                self._on_timer(row)
            case Rank.UPDATE:
                self._on_update(row, held)

    def _on_fault(self, node: str) -> None:
        """The node is gone: what was due before this stamp has been released, the rest is void."""
        self.roster.discard(node)
        for entry in [e for e in self._unfinished(node) if e.row]:
            self._void(entry)

    def _on_eval(self, version: int) -> None:
        """A pseudo-accuracy ends the run now and then, as a convergence rule would."""
        if version > 4 and derive(self.condition.seed, "accuracy", version) % 9 == 0:
            self._stop("converged")

    def _on_timer(self, row: Row) -> None:
        if self.wake is not None and row.id == self.wake.id:
            self.wake = None
            return
        (entry,) = (e for e in self.ledger.values() if e.abandon == row.name)
        self._record("abandoned", entry.assign.id)
        self._give_up_slot(entry)

    def _on_update(self, row: Row, held: Held) -> None:
        entry, echo = self.ledger[row.id], held.echo
        assert echo is not None
        staleness = self._judge(echo) if self.rules.judged_at_release else held.staleness
        self._close_row(entry)
        self.taken += 1
        if staleness is None:
            self._record("rejected", echo)
            self._give_up_slot(entry)
            del self.ledger[row.id]
        else:
            self._record("accepted", echo, staleness)
            self.accepted.append(Upload(entry, echo, staleness))

    def _judge(self, echo: Assign | None) -> int | None:
        return self.condition.staleness.judge(echo.at, self.progress) if echo else None

    # What acts outside the inbox, and only if a rule is dropped.

    def _on_note(self, node: str, available: bool) -> None:
        self.known[node] = available
        if not self.rules.belief_is_pure:
            self._decide()

    def _on_overdue(self, name: Name) -> None:
        late = name in self.inbox.rows and name not in self.inbox.arrived
        if late and not self.rules.late_is_not_silent:
            self._void(self.ledger[name.id])
            self._decide()

    # The ledger: a slot ends once, a row ends once.

    def _close_row(self, entry: Entry) -> None:
        entry.row = None
        if entry.abandon is not None:
            self.inbox.void(entry.abandon)

    def _give_up_slot(self, entry: Entry) -> None:
        """End a slot without a close; a sync cohort may ask for one more in its place."""
        lost_member = entry.holds_slot and entry.cycle == self.cycle
        if lost_member and self.rules.lost_is_replaced:
            self.quota += 1
        entry.holds_slot, entry.abandon = False, None

    def _void(self, entry: Entry) -> None:
        assert entry.row is not None
        self._record("voided", entry.assign.id)
        self.inbox.void(entry.row)
        self._close_row(entry)
        self._give_up_slot(entry)
        del self.ledger[entry.assign.id]

    def _unfinished(self, node: str) -> list[Entry]:
        return [entry for entry in self.ledger.values() if entry.assign.node == node]

    def _in_flight(self) -> int:
        return sum(entry.holds_slot for entry in self.ledger.values())

    # Decisions.

    def _decide(self) -> None:
        # A carried surplus of K or more closes at once, at the same stamp.
        while not self.stopped and len(self.accepted) >= self.goal:
            self._close_cycle()
        if not self.stopped:
            self._refill()
            self._find_stall()

    def _begin_cycle(self) -> None:
        self._sample()
        self.quota, self.taken = self.concurrency, 0

    def _sample(self, *more: int) -> None:
        """K and C of the open cycle. What is in flight beyond a C that has fallen is left there."""
        condition = self.condition
        self.concurrency = condition.sample("C", condition.concurrencies, self.cycle, *more)
        self.goal = condition.sample("K", condition.goals, self.cycle, *more)
        if self.rules.goal_is_clamped:
            self.goal = max(1, min(self.goal, self.concurrency))

    def _close_cycle(self) -> None:
        cohort, self.accepted = self.accepted[: self.goal], self.accepted[self.goal :]
        for upload in cohort:
            del self.ledger[upload.entry.assign.id]
        self.counts["carried"] += len(self.accepted)
        self.bin += cohort
        self.cycle += 1
        self._record("closed", self.cycle, tuple((u.echo.id, u.staleness) for u in cohort))
        reason = self._commit_reason()
        if reason is None:
            self.progress = self.progress.kept()
        else:
            self._commit(reason)
        self._begin_cycle()

    def _commit_reason(self) -> str | None:
        """Why the gate opens, first match first; None keeps the bin going."""
        threshold = self.condition.threshold
        if threshold is None:
            return "goal"
        if len(self.bin) >= 2 and self._variance() < threshold:
            return "natural"
        capped = self.progress.iteration + 1 >= self.condition.cap
        return "cap" if capped and self.rules.commit_is_capped else None

    def _variance(self) -> int:
        """Stands for the variance of the pool, in canonical order: it falls as 1/n."""
        pool = sorted((u.echo.due, u.echo.node) for u in self.bin)
        return derive(self.condition.seed, "variance", pool) % 1000 // len(pool)

    def _commit(self, reason: str) -> None:
        self._record("committed", reason, len(self.bin), *self.progress)
        self.bin = []
        self.progress = self.progress.committed(self.condition.bins)
        version = self.progress.version
        if version == self.condition.commits:
            self._stop("goal")
        elif version % 2 == 0:
            row = Row(self.frontier + self.condition.eval_time, Rank.EVAL, "", version)
            self.inbox.expect(row)
            self.effects.append(Evaluate(row))
            self.eval_floor = row.stamp if self.condition.eval_blocks else 0

    def _cause(self) -> int:
        """The stamp of what caused this decision; one for all that it dispatches."""
        return max(self.frontier if self.rules.stamped_by_cause else self.now, self.eval_floor)

    def _refill(self) -> None:
        stamp = self._cause()
        while self._wants_more():
            free = sorted(self.roster - self._busy())
            candidates = [node for node in free if self._can_be_chosen(node, stamp)]
            if not candidates:
                self._await_belief(free, stamp)
                return
            self.picks += 1
            pick = derive(self.condition.seed, "select", self.picks) % len(candidates)
            self._dispatch(candidates[pick], stamp)

    def _wants_more(self) -> bool:
        cohort_is_out = self.condition.sync and self.quota == 0
        return self._in_flight() < self.concurrency and not cohort_is_out

    def _busy(self) -> set[str]:
        """Nodes with something unfinished. An accept is: a trainer counts once per cycle."""
        owed = self.rules.owed_is_busy
        return {e.assign.node for e in self.ledger.values() if owed or e.holds_slot or not e.row}

    def _can_be_chosen(self, node: str, stamp: int) -> bool:
        return self._believed(node, stamp) and not self._is_lost(node, stamp)

    def _believed(self, node: str, stamp: int) -> bool:
        if self.rules.belief_is_pure or self.condition.awareness is not Awareness.NOTIFIED:
            return self.condition.believed(node, stamp)
        return self.known[node]

    def _due(self, node: str, stamp: int) -> int:
        return self.condition.next_available(node, stamp + self.condition.delay[node])

    def _is_lost(self, node: str, stamp: int) -> bool:
        return self.rules.never_is_refused and self._due(node, stamp) == NEVER

    def _dispatch(self, node: str, stamp: int) -> None:
        self.counts["second dispatch"] += any(entry.row for entry in self._unfinished(node))
        assign = Assign(self._next_id(), node, stamp, self._due(node, stamp), self.progress)
        row = Row(assign.due, Rank.UPDATE, node, assign.id)
        entry = Entry(assign, self.cycle, row.name)
        self.ledger[assign.id] = entry
        self.quota -= 1
        self.inbox.expect(row)
        if self.condition.abandon is not None:
            entry.abandon = self._own_timer(stamp + self.condition.abandon).name
        self._record("dispatched", assign)
        self.effects.append(Send(assign))

    def _await_belief(self, free: list[str], stamp: int) -> None:
        """Stand one wake where belief next changes; a nearer change moves it there."""
        at = min((self.condition.belief_changes(node, stamp) for node in free), default=NEVER)
        if not self.rules.wake_is_set or at >= (self.wake.stamp if self.wake else NEVER):
            return
        if self.wake is not None:
            self.inbox.void(self.wake.name)
        self.wake = self._own_timer(at)

    def _own_timer(self, stamp: int) -> Row:
        return self._set_timer(Row(stamp, Rank.TIMER, "", self._next_id()))

    def _set_timer(self, row: Row) -> Row:
        self.inbox.expect(row)
        self.effects.append(SetTimer(row))
        return row

    def _next_id(self) -> int:
        self.serial += 1
        return self.serial

    def _find_stall(self) -> None:
        """Cannot advance: nothing is to come, or too many releases have closed no cycle."""
        if all(name.rank is Rank.STOP for name in self.inbox.rows):
            self._stop("cannot advance")
        elif self.taken > 10 * self.concurrency:
            self._stop("nothing accepted")

    def why_not(self) -> dict[str, str]:
        """The table that goes with a stall: each node, and why it can't be chosen."""
        return {node: self._why_not(node, self._cause()) for node in sorted(self.condition.delay)}

    def _why_not(self, node: str, stamp: int) -> str:
        if node not in self.roster:
            return "not present"
        for entry in self._unfinished(node):
            return f"its update is due at {entry.assign.due}" if entry.row else "accepted, its cycle is open"
        if self._is_lost(node, stamp):
            return "away for good"
        return "selectable" if self._believed(node, stamp) else "away"

    def _stop(self, reason: str) -> None:
        self.stopped = reason
        self._record("stopped", reason)

    def _record(self, what: str, *details: object) -> None:
        self.counts[what] += 1
        self.log.append(Line(self.frontier, what, details))
