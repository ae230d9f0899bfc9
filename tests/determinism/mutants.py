"""The rules of time-and-order, each removed from the project's own code in one place.

A mutant is a rule, and what has to be replaced so that it no longer holds: attributes of classes and
modules, or entries of the aggregator's tables. Both worlds of a pair run with it. What it is caught
by is a field of `study.Tally`. Where the session layer and the inbox hold the same rule twice (an
answer counts once, and is found by its id), the mutant removes it from both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any, NamedTuple
from unittest.mock import patch

from flame.config.condition import Condition
from flame.core.events import PeerDown, PeerUp, Received, Started
from flame.core.messages import AGGREGATOR, Assign, Message, Update
from flame.core.rng import derive
from flame.core.time import seconds
from flame.policies.staleness import refusal
from flame.roles import aggregator as aggregator_module
from flame.roles.aggregator import RELEASE, RUNNING, TAKE, Aggregator
from flame.roles.cycle import Cycle
from flame.roles.dispatcher import Dispatcher
from flame.roles.inbox import EVAL, FAULT, JOIN, STOP, UPDATE, Handle, Inbox
from flame.roles.roster import FreeNodes, Roster, Row
from flame.roles.trainer import Trainer
from flame.runtime.aggregator_side import AggregatorSide
from flame.runtime.transport import liveness
from flame.runtime.transport.liveness import Liveness
from flame.runtime.transport.session import Answers, Dispatches


def _same(condition: Condition) -> Condition:
    return condition


class Mutant(NamedTuple):
    """A rule that is removed. by: what catches it. patches: (class, module or table; attribute or key; replacement).

    dooms: a run may starve where it wouldn't without the patches, and is not stuck then.
    """

    name: str
    rule: str
    by: str
    patches: Sequence[tuple[Any, Any, Any]]
    change: Callable[[Condition], Condition] = _same
    dooms: bool = False

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Without the rule."""
        with ExitStack() as stack:
            for target, name, value in self.patches:
                stack.enter_context(patch.dict(target, {name: value}) if isinstance(target, dict) else patch.object(target, name, value))
            yield


# ---- section 1: the closed world


def _take(inbox: Inbox, handle: Handle | None) -> Any:
    if handle is None:
        return None
    key = inbox._due.pop(handle)
    inbox.frontier = max(inbox.frontier, key[0])
    return key, inbox._arrived.pop(handle)


def _acts_when_it_comes(*ranks: int) -> list[tuple[Any, Any, Any]]:
    in_turn = Inbox.release

    def release(self: Inbox) -> Any:
        early = next((handle for handle in self._arrived if handle[0] in ranks), None)
        return _take(self, early) if early else in_turn(self)

    return [(Inbox, "release", release)]


def _ties_by_arrival(self: Inbox) -> Any:
    least = self.least()
    first = next((handle for handle in self._arrived if least and self._due[handle][0] == least[0]), None)
    return _take(self, first)


def _drains_first() -> list[tuple[Any, Any, Any]]:
    drain = Aggregator._drain

    def decide_at_the_end(self: Any) -> None:
        owed: list[bool] = []
        self._decide = lambda: owed.append(True)
        drain(self)
        del self._decide
        if owed and self.phase == RUNNING:
            self._decide()

    return [(Aggregator, "_drain", decide_at_the_end)]


def _starts_with_some() -> list[tuple[Any, Any, Any]]:
    everybody_first = AggregatorSide.received

    def received(self: AggregatorSide, driver: Any, inbound: Any) -> None:
        before = driver.origin
        everybody_first(self, driver, inbound)
        if before is None and driver.origin is None and self._present:
            self._start(driver)
        elif before is not None and inbound.kind == "presence":
            for presence in inbound.messages:
                driver.deliver(AGGREGATOR, PeerUp(presence.node, presence.profile))

    def started(self: Aggregator, event: Started) -> None:
        with patch.object(Condition, "nodes", property(lambda condition: tuple(self.profiles))):
            Aggregator._on_started(self, event)

    def joins(self: Aggregator, event: PeerUp) -> None:
        new = event.node not in self.profiles
        self.profiles[event.node] = event.profile
        if new and self.phase == RUNNING and event.node not in self.condition.population.joins:
            self.roster.join(event.node, event.profile)
            self._decide()

    return [(AggregatorSide, "received", received), (TAKE, Started, started), (TAKE, PeerUp, joins)]


def _stamped_by_now() -> list[tuple[Any, Any, Any]]:
    by_cause = Dispatcher.fill
    return [(Dispatcher, "fill", lambda self, now, stamp, weights: by_cause(self, now, max(stamp, now), weights))]


# ---- section 2: rows and slots


def _keyed_by_node() -> list[tuple[Any, Any, Any]]:
    by_id = Inbox.arrive

    def arrive(self: Inbox, handle: Handle, content: Any, now: int) -> bool:
        own = next((each for each in self._due if each[:2] == handle[:2]), handle)
        return by_id(self, own, replace(content, id=own[2]) if isinstance(content, Update) else content, now)

    def answered(self: Dispatches, node: str, update_id: int) -> bool:
        return self._open.pop(self._by_node.pop(node, -1), None) is not None

    unmeasured = (AggregatorSide, "stepped", lambda *_: None)  # how late an id was can't be told
    return [(Inbox, "arrive", arrive), (Dispatches, "answered", answered), unmeasured]


def _judged_on_arrival() -> list[tuple[Any, Any, Any]]:
    arrives = Aggregator._arrive

    def arrive(self: Any, handle: Handle, content: Any) -> None:
        if isinstance(content, Update):
            judged = refusal(self.condition.staleness, content.version, content.iteration, self.cycle.progress)
            self.__dict__.setdefault("judged", {})[handle[2]] = judged
        arrives(self, handle, content)

    def release(self: Any, key: Any, update: Update) -> None:
        with patch.object(aggregator_module, "refusal", lambda *_: self.judged[key[3]]):
            Aggregator._release_update(self, key, update)

    return [(Aggregator, "_arrive", arrive), (RELEASE, UPDATE, release)]


def _freed_on_return() -> list[tuple[Any, Any, Any]]:
    held_to_close = Roster.take

    def take(self: Roster, id: int, *what: Any) -> Row:
        row = held_to_close(self, id, *what)
        self._release(row, "return")
        return row

    def close(self: Roster, ids: Any) -> None:
        for number in ids:
            del self.taken[number]

    return [(Roster, "take", take), (Roster, "close", close)]


def _known_on_arrival() -> list[tuple[Any, Any, Any]]:
    received = Aggregator._on_received

    def on_received(self: Aggregator, event: Any) -> None:
        received(self, event)
        if event.msg.id in self.roster.open:
            member = self.roster.members[event.src]
            self.roster.unexplored -= member.count == 0
            member.utility, member.last = event.msg.utility, self.cycle.progress.cycle
            member.count += 1

    def take(self: Roster, id: int, *what: Any) -> Row:
        row = self.taken[id] = self.open.pop(id)
        self._note("take", row.node)
        return row

    return [(TAKE, Received, on_received), (Roster, "take", take)]


def _taken_holds_no_slot() -> list[tuple[Any, Any, Any]]:
    held_to_close, close = Roster.take, Roster.close

    def take(self: Roster, id: int, *what: Any) -> Row:
        row = held_to_close(self, id, *what)
        self.in_flight -= not row.owed
        return row

    def free(self: Roster, ids: Any) -> None:
        ids = list(ids)
        self.in_flight += sum(not self.taken[number].owed for number in ids)
        close(self, ids)

    return [(Roster, "take", take), (Roster, "close", free)]


def _owed_is_selectable() -> list[tuple[Any, Any, Any]]:
    given_up, release, taken_out = Roster.abandon, Roster._release, Roster.dispatch

    def abandon(self: Roster, id: int) -> Row:
        row = given_up(self, id)
        if self.members[row.node].believed:
            self.free.add(row.node)
        return row

    def end(self: Roster, row: Row, how: str) -> None:
        if row.owed and row.node in self.free:
            self.free.remove(row.node)
        release(self, row, how)

    return [(Roster, "abandon", abandon), (Roster, "_release", end), (Roster, "dispatch", taken_out)]


def _open_is_selectable() -> list[tuple[Any, Any, Any]]:
    taken_out, add = Roster.dispatch, FreeNodes.add

    def dispatch(self: Roster, node: str, *rest: Any) -> Row:
        row = taken_out(self, node, *rest)
        self.free.add(node)
        return row

    def add_once(self: FreeNodes, node: str) -> None:
        if node not in self:
            add(self, node)

    return [(Roster, "dispatch", dispatch), (FreeNodes, "add", add_once)]


def _not_replaced() -> list[tuple[Any, Any, Any]]:
    leave = Aggregator._leave

    def keep_quota(self: Aggregator, node: str) -> Row | None:
        quota = self.cycle.quota
        row = leave(self, node)
        self.cycle.quota = quota
        return row

    return [(Aggregator, "_leave", keep_quota)]


def _unclamped(self: Cycle, goal: int, concurrency: int, quota: int | None, unanswered: int = 0) -> None:
    self.slots = max(concurrency, unanswered)
    self.goal, self.concurrency, self.quota = goal, concurrency, quota


def _over_c(condition: Condition) -> Condition:
    return condition.model_copy(update={"changes": (), "goal": condition.concurrency + 1})


def _eval_lets_pass(self: Inbox) -> Any:
    ready = [key for handle, key in self._due.items() if handle[0] != EVAL or handle in self._arrived]
    least = min(ready, default=None)
    return _take(self, least[1:]) if least and least[1:] in self._arrived else None


def _blocking_is_measured() -> list[tuple[Any, Any, Any]]:
    modelled = Aggregator._evaluate

    def evaluate(self: Aggregator, stamp: int) -> None:
        modelled(self, stamp)
        if self.condition.eval.blocks:
            self._blocked_until = self._now + seconds(self.condition.eval.seconds)

    return [(Aggregator, "_evaluate", evaluate)]


# ---- section 3: silence


def _never_again() -> list[tuple[Any, Any, Any]]:
    present = Dispatches.present

    def notes_only(self: Dispatches, node: str, incarnation: str, now: int) -> list[Message]:
        present(self, node, incarnation, now)
        return []

    return [(Dispatches, "overdue", lambda *_: []), (Dispatches, "reconnected", lambda *_: []), (Dispatches, "present", notes_only)]


def _without_weights() -> list[tuple[Any, Any, Any]]:
    send = Dispatches.send

    def only_itself(self: Dispatches, node: str, assign: Assign, now: int) -> list[Message]:
        send(self, node, assign, now)
        return [assign]

    return [(Dispatches, "send", only_itself), (Dispatches, "_again", lambda self, row, now: [row.assign])]


def _runs_again() -> list[tuple[Any, Any, Any]]:
    once = Answers.receive

    def receive(self: Answers, node: str, msg: Message) -> tuple[Message | None, Update | None]:
        return (msg, None) if isinstance(msg, Assign) else once(self, node, msg)

    return [(Answers, "receive", receive)]


def _answers_once() -> list[tuple[Any, Any, Any]]:
    receive = Answers.receive
    return [(Answers, "receive", lambda self, node, msg: (receive(self, node, msg)[0], None))]


def _late_is_silent() -> list[tuple[Any, Any, Any]]:
    outgoing = AggregatorSide.outgoing

    def send(self: AggregatorSide, driver: Any, src: str, to: str, msg: Any) -> list[Message]:
        def check() -> None:
            machine = driver.machines[AGGREGATOR]
            if machine.inbox._due.get((UPDATE, to, msg.id)) and (UPDATE, to, msg.id) not in machine.inbox._arrived:
                driver.deliver(AGGREGATOR, PeerDown(to, "its update is late"))

        driver.after(max(0, msg.due - driver.now) + seconds(2.0), check)
        return outgoing(self, driver, src, to, msg)

    return [(AggregatorSide, "outgoing", send)]


def _ledger_of_incarnation() -> list[tuple[Any, Any, Any]]:
    received = AggregatorSide.received

    def forget(self: AggregatorSide, driver: Any, inbound: Any) -> None:
        for node in inbound.nodes if inbound.kind == "presence" and driver.origin is not None else ():
            member = driver.machines[AGGREGATOR].roster.members.get(node)
            if member is not None:
                member.held = None
        received(self, driver, inbound)

    return [(AggregatorSide, "received", forget)]


def _seeds_from_a_stream() -> list[tuple[Any, Any, Any]]:
    start = Trainer._start

    def advance(self: Trainer, now: int, assign: Assign) -> list[Any]:
        effects: list[Any] = start(self, now, assign)
        effects[1].task = replace(effects[1].task, seed=derive(1, self.profile.node, self._passes))
        return effects

    return [(Trainer, "_start", advance)]


ALL_RULES = Mutant("with all the rules", "none is removed", "", [])

MUTANTS = [
    Mutant("acts_on_arrival", "a row waits until it is the least one", "unequal", _acts_when_it_comes(*range(6))),
    Mutant("update_bypasses", "an update is a row", "unequal", _acts_when_it_comes(UPDATE)),
    Mutant("stop_bypasses", "the budget of stamps is a row", "unequal", _acts_when_it_comes(STOP)),
    Mutant("leave_bypasses", "a planned leave is a row", "unequal", _acts_when_it_comes(FAULT)),
    Mutant("join_bypasses", "a planned join is a row", "unequal", _acts_when_it_comes(JOIN)),
    Mutant("timers_bypass", "a stamped timer is a row", "unequal", _acts_when_it_comes(STOP, FAULT, JOIN)),
    Mutant("eval_bypasses", "an eval is a row", "unequal", _acts_when_it_comes(EVAL)),
    Mutant("ties_by_arrival", "rows of one stamp go by rank, node, id", "unequal", [(Inbox, "release", _ties_by_arrival)]),
    Mutant("drains_first", "one release, one decision", "unequal", _drains_first()),
    Mutant("starts_with_some", "stamp 0: all nodes are present", "unequal", _starts_with_some()),
    Mutant("stamped_by_now", "an assign carries the stamp of its cause", "unequal", _stamped_by_now()),
    Mutant("keyed_by_node", "an update finds its row by assign id", "unequal", _keyed_by_node()),
    Mutant("judged_on_arrival", "staleness is judged at the release", "unequal", _judged_on_arrival()),
    Mutant("freed_on_return", "a slot is held to the close", "second", _freed_on_return()),
    Mutant("known_on_arrival", "a selector knows of an update what was accepted", "unequal", _known_on_arrival()),
    Mutant("taken_holds_no_slot", "a taken update counts as in flight", "second", _taken_holds_no_slot()),
    Mutant("owed_is_selectable", "a node whose update is owed isn't selectable", "second", _owed_is_selectable()),
    Mutant("wake_is_not_set", "a wake stands where belief changes", "stuck", [(Dispatcher, "_set_wake", lambda *_: None)]),
    Mutant("open_is_selectable", "a node with an open row isn't selectable", "second", _open_is_selectable()),
    Mutant("lost_not_replaced", "a lost member of a cohort is replaced", "stuck", _not_replaced()),
    Mutant("goal_over_c", "K is clamped to C", "stuck", [(Cycle, "open", _unclamped)], _over_c),
    Mutant("eval_lets_pass", "nothing later than an eval is released before it", "unequal", [(Inbox, "release", _eval_lets_pass)]),
    Mutant("blocking_is_measured", "an eval blocks for its modelled time", "unequal", _blocking_is_measured()),
    Mutant("stall_not_found", "cannot advance is the machine's own finding", "stuck", [(Aggregator, "_decide", Aggregator._refill)]),
    Mutant("never_again", "an open assign is sent again until answered", "stuck", _never_again()),
    Mutant("without_weights", "a new incarnation is given the weights", "stuck", _without_weights()),
    Mutant("runs_again", "a trainer runs an id once", "unequal", _runs_again()),
    Mutant("answers_once", "asked again, a trainer sends its last update again", "stuck", _answers_once()),
    Mutant("late_is_silent", "lateness is never silence", "unequal", _late_is_silent()),
    Mutant("silence_not_found", "a worker without heartbeat is started again", "stuck", [(Liveness, "silent", lambda self, now: [])]),
    Mutant("compute_for_ever", "a compute that never ends is silence", "stuck", [(liveness, "LONG_COMPUTE", 1 << 62)]),
    Mutant("ledger_of_incarnation", "the ledger's payload kind outlives an incarnation", "unequal", _ledger_of_incarnation()),
    Mutant("seeds_from_a_stream", "derived seeds make a rerun bit-equal", "unequal", _seeds_from_a_stream()),
]
