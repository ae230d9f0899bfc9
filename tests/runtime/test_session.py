"""The session layer: whatever is lost, doubled, overtaken or restarted, an assign is answered and runs once.

The unit tests name one case each. The walks are random: a link between the two ends that may do
anything to what is on its way, and in the end, when it is good again, everything is answered.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from random import Random

import pytest

from flame.core.messages import AGGREGATOR, Assign, End, Message, Payload, Update, Weights
from flame.core.tensor import Tensor
from flame.runtime.transport.session import Answers, Dispatches

RESEND = 5


def theta(version: int) -> Tensor:
    return Tensor("int64", (1,), version.to_bytes(8, "little"))


def assign(id: int, version: int = 0, kind: str = "full", sent: int = 0, base: int | None = None) -> Assign:
    payload = Payload(kind, {"theta": theta(version)} if kind == "full" else {}, base)
    return Assign(id, version, 0, 0, 0, 0, 0, sent, payload)


def update(id: int) -> Update:
    return Update(id, 0, 0, 0, 0, Payload("dense"), 8, 0.0, 0.0, 0.0)


def weights(version: int) -> Weights:
    return Weights(version, Payload("full", {"theta": theta(version)}))


def full(version: int) -> Payload:
    return weights(version).payload


def dispatches() -> Dispatches:
    """The aggregator's end, with trainer `t` of worker incarnation `a` present."""
    end = Dispatches(RESEND, full)
    end.present("t", "a", 0)
    return end


# ---- the aggregator's end


def test_a_new_assign_is_sent_as_it_is() -> None:
    end = dispatches()
    assert end.send("t", assign(1), 0) == [assign(1)]
    assert end.send("t", assign(2, kind="none"), 1) == [assign(2, kind="none")]


def test_what_nobody_confirms_is_sent_again_at_the_pace_of_resend() -> None:
    end = dispatches()
    end.send("t", assign(1), 0)
    assert end.overdue(RESEND - 1) == []
    assert end.overdue(RESEND) == [("t", assign(1, sent=RESEND))]
    assert end.overdue(RESEND + 1) == []
    assert end.overdue(2 * RESEND) == [("t", assign(1, sent=2 * RESEND))]


def test_what_the_worker_has_is_not_sent_again() -> None:
    end = dispatches()
    end.send("t", assign(1), 0)
    end.heard(["t", "other"], [1])
    assert end.overdue(RESEND) == []
    end.heard(["t"], [])
    assert end.overdue(RESEND) == [("t", assign(1, sent=RESEND))]


def test_what_was_sent_again_has_to_be_confirmed_again() -> None:
    end = dispatches()
    end.send("t", assign(1), 0)
    end.heard(["t"], [1])
    assert end.present("t", "b", 1) == [assign(1, sent=1)]
    assert end.overdue(1 + RESEND) == [("t", assign(1, sent=1 + RESEND))]


def test_the_first_answer_counts_and_later_ones_do_not() -> None:
    end = dispatches()
    end.send("t", assign(1), 0)
    assert [end.answered("t", 1), end.answered("t", 1)] == [True, False]
    assert end.overdue(100) == []
    end.send("t", assign(2), 0)
    assert [end.answered("t", 1), end.answered("other", 2), end.answered("t", 2)] == [False, False, True]


def test_a_trainer_that_comes_back_gets_its_open_assign() -> None:
    end = dispatches()
    end.send("t", assign(1), 0)
    assert end.present("t", "a", 1) == [assign(1, sent=1)]
    assert end.present("u", "a", 1) == []


def test_a_connection_that_comes_back_gets_everything_that_is_open() -> None:
    end = dispatches()
    end.send("t", assign(1), 0)
    end.send("u", assign(2), 0)
    end.answered("t", 1)
    assert end.reconnected(1) == [("u", assign(2, sent=1))]


def test_a_new_incarnation_gets_the_weights_that_its_ledger_says_it_has() -> None:
    end = dispatches()
    end.send("t", assign(1), 0)
    end.answered("t", 1)
    assert end.present("t", "b", 1) == []
    assert end.send("t", assign(2, kind="none"), 1) == [weights(0), assign(2, kind="none")]
    end.answered("t", 2)
    assert end.send("t", assign(3, kind="none"), 1) == [assign(3, kind="none")]


def test_what_is_sent_again_without_weights_comes_with_them() -> None:
    end = dispatches()
    end.send("t", assign(1), 0)
    end.answered("t", 1)
    end.send("t", assign(2, kind="none"), 0)
    assert end.present("t", "b", 1) == [weights(0), assign(2, kind="none", sent=1)]
    assert end.reconnected(2) == [("t", weights(0)), ("t", assign(2, kind="none", sent=2))]
    assert end.overdue(2 + RESEND) == [("t", weights(0)), ("t", assign(2, kind="none", sent=2 + RESEND))]
    end.answered("t", 2)
    assert end.send("t", assign(3, kind="none"), 20) == [assign(3, kind="none")]


def test_the_weights_of_an_open_assign_outlive_newer_versions() -> None:
    end = dispatches()
    end.send("t", assign(1, version=0), 0)
    end.answered("t", 1)
    end.send("t", assign(2, version=0, kind="none"), 0)
    for version in range(1, 4):
        end.send("u", assign(2 + version, version), 0)
        end.answered("u", 2 + version)
    assert end.present("t", "b", 1) == [weights(0), assign(2, kind="none", sent=1)]


def test_a_difference_goes_to_who_holds_what_it_builds_on_and_weights_before_it_to_others() -> None:
    end = dispatches()
    end.send("t", assign(1), 0)
    end.answered("t", 1)
    assert end.send("t", assign(2, 3, "delta", base=0), 0) == [assign(2, 3, "delta", base=0)]
    assert end.present("t", "b", 1) == [weights(3), assign(2, 3, "delta", sent=1, base=0)]
    end.answered("t", 2)
    end.present("t", "c", 2)
    assert end.send("t", assign(3, 4, "delta", sent=2, base=3), 2) == [weights(4), assign(3, 4, "delta", sent=2, base=3)]


@pytest.mark.parametrize(("held", "taken"), [(2, True), (4, True), (3, False), (None, False)])
def test_a_difference_is_taken_where_it_leads_somewhere(held: int | None, taken: bool) -> None:
    answers = Answers()
    if held is not None:
        answers.receive("t", weights(held))
    new = assign(1, 4, "delta", base=2)
    assert answers.receive("t", new) == ((new if taken else None), None)


def test_a_node_that_is_given_up_has_nothing_open() -> None:
    end = dispatches()
    end.send("t", assign(1), 0)
    end.void("t")
    end.void("t")
    assert end.overdue(100) == []
    assert not end.answered("t", 1)


# ---- the trainers' end


def test_an_id_runs_once_and_its_update_is_sent_again() -> None:
    end = Answers()
    assert end.receive("t", assign(1)) == (assign(1), None)
    assert end.busy() == [1]
    assert end.receive("t", assign(1)) == (None, None)
    end.sent("t", update(1))
    assert end.busy() == []
    assert end.receive("t", assign(1)) == (None, update(1))


def test_an_older_assign_that_comes_late_is_dropped() -> None:
    end = Answers()
    for number in (1, 2):
        end.receive("t", assign(number))
        end.sent("t", update(number))
    assert end.receive("t", assign(1)) == (None, None)


def test_what_refers_to_weights_that_are_not_here_waits_to_be_sent_with_them() -> None:
    end = Answers()
    bare = assign(1, version=3, kind="none")
    assert end.receive("t", bare) == (None, None)
    assert end.receive("t", weights(2)) == (weights(2), None)
    assert end.receive("t", bare) == (None, None)
    assert end.receive("t", weights(3)) == (weights(3), None)
    assert end.receive("t", bare) == (bare, None)


def test_weights_that_are_here_already_or_come_while_it_runs_are_dropped() -> None:
    end = Answers()
    end.receive("t", assign(1, version=1))
    assert end.receive("t", weights(2)) == (None, None)
    end.sent("t", update(1))
    assert end.receive("t", weights(1)) == (None, None)
    assert end.receive("t", weights(2)) == (weights(2), None)


def test_a_new_incarnation_that_runs_an_old_assign_takes_the_open_one_afterwards() -> None:
    """A late copy of what the incarnation before has answered must not meet the open assign in the trainer."""
    end = Answers()
    end.receive("t", assign(5))
    assert end.receive("t", assign(9)) == (None, None)
    assert end.busy() == [5]
    end.sent("t", update(5))
    assert end.receive("t", assign(9)) == (assign(9), None)


def test_trainers_of_one_worker_are_kept_apart() -> None:
    end = Answers()
    for node, number in (("t", 1), ("u", 2)):
        assert end.receive(node, assign(number)) == (assign(number), None)
    end.sent("u", update(2))
    assert end.busy() == [1]


def test_other_messages_pass() -> None:
    assert Answers().receive("t", End("done")) == (End("done"), None)


# ---- both ends and what lies between


@dataclass
class Life:
    """One incarnation of the worker: what its trainers run and hold, and which ids they have run."""

    name: str
    answers: Answers = field(default_factory=Answers)
    running: dict[str, int] = field(default_factory=dict)
    held: dict[str, int] = field(default_factory=dict)
    ran: set[tuple[str, int]] = field(default_factory=set)

    def take(self, node: str, msg: Message) -> None:
        """What the trainer machine does: it raises where it can't take a message."""
        assert node not in self.running, f"`{node}` runs {self.running[node]} and got {msg}"
        if isinstance(msg, Weights):
            self.held[node] = msg.version
        elif isinstance(msg, Assign):
            if msg.payload.kind != "full" and self.held.get(node) != msg.version:
                assert self.held.get(node, -1) == msg.payload.base, f"`{node}` holds {self.held.get(node)} and got {msg}"
            self.held[node] = msg.version
            assert (node, msg.id) not in self.ran, f"`{node}` runs {msg.id} twice"
            self.ran.add((node, msg.id))
            self.running[node] = msg.id


NODES = ("t", "u")


class Walk:
    """A worker of two trainers, an aggregator that sends weights or differences once per version, and a bag of messages between them."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.now = self.serial = self.version = 0
        self.dispatches = Dispatches(RESEND, full)
        self.life = Life("life 0")
        self.bag: list[tuple[str, str, Message]] = []
        self.ledger: dict[str, int] = {}
        self.open: dict[str, int] = {}
        self.answered: list[int] = []
        self.hits: Counter[str] = Counter()
        self.announce()

    def step(self) -> None:
        """Something happens."""
        moves: list[tuple[Callable[[], None], int]] = [
            (self.carry, 12), (self.dispatch, 4), (self.finish, 3), (self.tick, 2), (self.beat, 2),
            (self.commit, 1), (self.reconnect, 1), (self.announce, 1), (self.die, 1),
        ]  # fmt: skip
        (move,) = self.rng.choices([move for move, _ in moves], [weight for _, weight in moves])
        move()
        assert sorted(self.life.answers.busy()) == sorted(self.life.running.values())

    def put(self, to: str, node: str, messages: list[Message]) -> None:
        self.hits.update(f"{to} {msg.kind}" for msg in messages)
        self.bag += [(to, node, msg) for msg in messages]

    # the aggregator

    def dispatch(self) -> None:
        node = self.rng.choice(NODES)
        if node not in self.open:
            self.serial += 1
            held = self.ledger.get(node)
            kind = "none" if held == self.version else "full" if held is None or self.rng.random() < 0.5 else "delta"
            self.open[node], self.ledger[node] = self.serial, self.version
            self.hits[f"dispatch {kind}"] += 1
            new = assign(self.serial, self.version, kind, base=held if kind == "delta" else None)
            self.put("worker", node, self.dispatches.send(node, new, self.now))

    def commit(self) -> None:
        self.version += 1

    def tick(self) -> None:
        self.now += self.rng.randint(1, 2 * RESEND)
        for node, msg in self.dispatches.overdue(self.now):
            self.put("worker", node, [msg])

    def reconnect(self) -> None:
        for node, msg in self.dispatches.reconnected(self.now):
            self.put("worker", node, [msg])

    # the worker

    def announce(self) -> None:
        for node in NODES:
            self.put("worker", node, self.dispatches.present(node, self.life.name, self.now))

    def die(self) -> None:
        self.hits["die"] += 1
        self.life = Life(f"life {self.hits['die']}")
        if self.rng.random() < 0.7:
            self.announce()

    def finish(self) -> None:
        for node, number in list(self.life.running.items()):
            del self.life.running[node]
            self.life.answers.sent(node, update(number))
            self.put(AGGREGATOR, node, [update(number)])

    def beat(self) -> None:
        self.dispatches.heard(list(NODES), self.life.answers.busy())

    # the link

    def carry(self) -> None:
        """One message, the next or any, is delivered, copied or lost."""
        if self.bag:
            place = self.rng.choice([0, self.rng.randrange(len(self.bag))])
            fate = self.rng.choice(["deliver", "deliver", "deliver", "copy", "lose"])
            parcel = self.bag[place] if fate == "copy" else self.bag.pop(place)
            if fate != "lose":
                self.deliver(*parcel)

    def deliver(self, to: str, node: str, msg: Message) -> None:
        if to == AGGREGATOR:
            if self.dispatches.answered(node, getattr(msg, "id", 0)):
                assert self.open.pop(node) == getattr(msg, "id", 0)
                self.answered.append(getattr(msg, "id", 0))
            return
        deliver, repeat = self.life.answers.receive(node, msg)
        if repeat is not None:
            self.put(AGGREGATOR, node, [repeat])
        if deliver is not None:
            self.life.take(node, deliver)

    # the end

    def settle(self) -> int:
        """The link is good from now on. Pauses until everything is answered; what is on its way comes first."""
        for pauses in range(6):
            for _ in range(3):
                while self.bag:
                    self.deliver(*self.bag.pop(0))
                self.finish()
            if not self.open:
                return pauses
            self.beat()
            self.now += RESEND
            for node, msg in self.dispatches.overdue(self.now):
                self.put("worker", node, [msg])
        raise AssertionError(f"not answered: {self.open}")


@cache
def walked(seed: int) -> Walk:
    walk = Walk(seed)
    for _ in range(300):
        walk.step()
    return walk


@pytest.mark.parametrize("start", range(0, 200, 50))
def test_whatever_the_link_does_an_assign_runs_once_and_is_answered(start: int) -> None:
    for seed in range(start, start + 50):
        walk = walked(seed)
        assert walk.settle() <= 2
        assert sorted(walk.answered) == list(range(1, walk.serial + 1))


def test_the_walks_reach_what_they_are_for() -> None:
    hits = sum((walked(seed).hits for seed in range(20)), Counter())
    assert hits["worker weights"] > 20
    assert hits["worker assign"] > sum(walked(seed).serial for seed in range(20))
    assert hits[f"{AGGREGATOR} update"] > sum(len(walked(seed).answered) for seed in range(20))
    assert hits["die"] > 20
    assert min(hits[f"dispatch {kind}"] for kind in ("none", "full", "delta")) > 20
