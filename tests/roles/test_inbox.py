"""The inbox against a model that knows nothing of heaps: a list of rows, sorted each time."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from flame.roles.inbox import EVAL, FAULT, JOIN, OWN, STOP, TIMER, UPDATE, Handle, Inbox, Key

HANDLE = st.tuples(st.sampled_from([STOP, FAULT, JOIN, EVAL, TIMER, UPDATE]), st.sampled_from([OWN, "t1", "t10", "t2"]), st.integers(0, 12))
KEY = st.tuples(st.integers(0, 5), HANDLE).map(lambda pair: (pair[0], *pair[1]))
KEYS = st.lists(KEY, max_size=12, unique_by=lambda key: key[1:])


def inbox_of(keys: list[Key]) -> Inbox:
    inbox = Inbox("stamp")
    for key in keys:
        inbox.expect(key)
    return inbox


def drain(inbox: Inbox) -> list[Key]:
    released = []
    while (row := inbox.release()) is not None:
        released.append(row[0])
    return released


@given(KEYS, st.randoms(use_true_random=False))
def test_whatever_the_order_of_arrival_rows_are_released_in_the_order_of_their_keys(keys: list[Key], rng: Any) -> None:
    arrivals = rng.sample(keys, len(keys))
    inbox, released = inbox_of(keys), []
    for now, key in enumerate(arrivals):
        assert inbox.arrive(key[1:], f"content of {key}", now)
        while (row := inbox.release()) is not None:
            assert row[1] == f"content of {row[0]}"
            released.append(row[0])
    assert released == sorted(keys)
    assert len(inbox) == 0


@given(KEYS, st.data())
def test_what_is_released_is_the_prefix_of_what_has_arrived(keys: list[Key], data: st.DataObject) -> None:
    arrived = data.draw(st.lists(st.sampled_from(keys), unique=True)) if keys else []
    inbox = inbox_of(keys)
    for key in arrived:
        inbox.arrive(key[1:], None, 0)
    expected = []
    for key in sorted(keys):
        if key not in arrived:
            break
        expected.append(key)
    assert drain(inbox) == expected


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((1, UPDATE, "t9", 9), (2, STOP, OWN, 0)),  # stamp before rank
        ((5, STOP, OWN, 0), (5, FAULT, "t0", 0)),
        ((5, FAULT, "t9", 0), (5, JOIN, "t0", 0)),
        ((5, JOIN, "t9", 0), (5, EVAL, OWN, 1)),
        ((5, EVAL, OWN, 9), (5, TIMER, OWN, 0)),
        ((5, TIMER, "t9", 9), (5, UPDATE, "t0", 1)),
        ((5, UPDATE, "t0", 9), (5, UPDATE, "t1", 1)),  # node before id
        ((5, UPDATE, "t0", 9), (5, UPDATE, "t0", 10)),  # ids as numbers
    ],
)
def test_the_order_of_two_rows(first: Key, second: Key) -> None:
    inbox = inbox_of([second, first])
    for key in (second, first):
        inbox.arrive(key[1:], None, 0)
    assert drain(inbox) == [first, second]


def test_a_row_is_expected_once() -> None:
    inbox = inbox_of([(3, UPDATE, "t0", 1)])
    with pytest.raises(ValueError, match=r"row \(5, 't0', 1\) is in the due set already"):
        inbox.expect((4, UPDATE, "t0", 1))


def test_a_row_behind_the_frontier_is_refused() -> None:
    inbox = inbox_of([(3, UPDATE, "t0", 1)])
    inbox.arrive((UPDATE, "t0", 1), None, 0)
    drain(inbox)
    inbox.expect((3, UPDATE, "t0", 2))
    with pytest.raises(ValueError, match="lies behind the frontier 3"):
        inbox.expect((2, UPDATE, "t0", 3))


def test_only_a_row_can_be_voided() -> None:
    with pytest.raises(KeyError):
        Inbox("stamp").void((UPDATE, "t0", 1))


def test_a_voided_row_blocks_nothing_and_takes_nothing() -> None:
    inbox = inbox_of([(1, UPDATE, "t0", 1), (2, UPDATE, "t1", 2)])
    inbox.arrive((UPDATE, "t1", 2), "two", 0)
    assert inbox.release() is None
    inbox.void((UPDATE, "t0", 1))
    assert not inbox.arrive((UPDATE, "t0", 1), "late", 0)
    assert inbox.release() == ((2, UPDATE, "t1", 2), "two")


def test_a_voided_row_forgets_what_had_arrived() -> None:
    inbox = inbox_of([(1, UPDATE, "t0", 1)])
    inbox.arrive((UPDATE, "t0", 1), "old", 0)
    inbox.void((UPDATE, "t0", 1))
    inbox.expect((1, UPDATE, "t0", 1))
    assert inbox.release() is None
    assert inbox.arrive((UPDATE, "t0", 1), "new", 0)
    assert inbox.release() == ((1, UPDATE, "t0", 1), "new")
    assert inbox.release() is None


def test_keep_only_voids_the_other_ranks() -> None:
    inbox = inbox_of([(1, STOP, OWN, 0), (2, EVAL, OWN, 1), (3, UPDATE, "t0", 1), (4, EVAL, OWN, 2)])
    inbox.keep_only(EVAL)
    for version in (1, 2):
        inbox.arrive((EVAL, OWN, version), None, 0)
    assert [key[0] for key in drain(inbox)] == [2, 4]


@pytest.mark.parametrize(
    ("keys", "can"),
    [([], False), ([(9, STOP, OWN, 0)], False), ([(9, STOP, OWN, 0), (8, EVAL, OWN, 1)], True), ([(9, FAULT, "t0", 0)], True)],
)
def test_a_stop_alone_is_no_way_on(keys: list[Key], can: bool) -> None:
    assert inbox_of(keys).can_advance() is can


def test_the_key_of_an_open_row() -> None:
    inbox = inbox_of([(7, JOIN, "t0", 0)])
    assert inbox.key((JOIN, "t0", 0)) == (7, JOIN, "t0", 0)
    assert inbox.key((JOIN, "t1", 0)) is None


class TestArrivalOrder:
    """A row is stamped when it arrives: max(frontier, now)."""

    def inbox(self, *handles: Handle) -> Inbox:
        inbox = Inbox("arrival")
        for handle in handles:
            inbox.expect((100, *handle))
        return inbox

    def test_nothing_waits_for_a_lesser_row(self) -> None:
        inbox = self.inbox((UPDATE, "t0", 1), (UPDATE, "t1", 2))
        inbox.arrive((UPDATE, "t1", 2), "two", 30)
        assert inbox.release() == ((30, UPDATE, "t1", 2), "two")
        assert inbox.release() is None
        assert inbox.frontier == 30

    def test_a_stamp_is_never_before_the_frontier(self) -> None:
        inbox = self.inbox((UPDATE, "t0", 1), (UPDATE, "t1", 2))
        inbox.arrive((UPDATE, "t1", 2), None, 30)
        drain(inbox)
        inbox.arrive((UPDATE, "t0", 1), None, 20)
        assert drain(inbox) == [(30, UPDATE, "t0", 1)]

    def test_what_arrives_together_goes_by_key(self) -> None:
        inbox = self.inbox((UPDATE, "t1", 1), (UPDATE, "t0", 2), (STOP, OWN, 0))
        for handle in ((UPDATE, "t1", 1), (UPDATE, "t0", 2), (STOP, OWN, 0)):
            inbox.arrive(handle, None, 5)
        assert drain(inbox) == [(5, STOP, OWN, 0), (5, UPDATE, "t0", 2), (5, UPDATE, "t1", 1)]

    def test_duplicates_and_voids_are_as_ever(self) -> None:
        inbox = self.inbox((UPDATE, "t0", 1), (UPDATE, "t1", 2))
        assert inbox.arrive((UPDATE, "t0", 1), "one", 3)
        assert not inbox.arrive((UPDATE, "t0", 1), "again", 4)
        inbox.void((UPDATE, "t0", 1))
        assert inbox.release() is None
        assert inbox.can_advance()


class InboxMachine(RuleBasedStateMachine):
    """Expect, arrive, void, release in any order, against a dictionary that is sorted each time."""

    order: Any = "stamp"

    def __init__(self) -> None:
        super().__init__()
        self.inbox = Inbox(self.order)
        self.due: dict[Handle, int] = {}
        self.arrived: dict[Handle, int] = {}
        self.stamps: list[int] = [0]
        self.now = 0

    @rule(ahead=st.integers(0, 4), handle=HANDLE)
    def expect(self, ahead: int, handle: Handle) -> None:
        stamp = self.stamps[-1] + ahead
        if handle in self.due:
            with pytest.raises(ValueError, match="already"):
                self.inbox.expect((stamp, *handle))
        else:
            self.inbox.expect((stamp, *handle))
            self.due[handle] = stamp

    @rule(handle=HANDLE, passed=st.integers(0, 3))
    def arrive(self, handle: Handle, passed: int) -> None:
        self.now += passed
        taken = self.inbox.arrive(handle, (handle, self.now), self.now)
        assert taken == (handle in self.due and handle not in self.arrived)
        if taken:
            self.arrived[handle] = self.now
            if self.order == "arrival":
                self.due[handle] = max(self.stamps[-1], self.now)

    @precondition(lambda self: self.due)
    @rule(data=st.data())
    def arrive_open(self, data: st.DataObject) -> None:
        self.arrive(data.draw(st.sampled_from(sorted(self.due))), 1)

    @precondition(lambda self: self.due)
    @rule(data=st.data())
    def void(self, data: st.DataObject) -> None:
        handle = data.draw(st.sampled_from(sorted(self.due)))
        self.inbox.void(handle)
        del self.due[handle]
        self.arrived.pop(handle, None)

    @rule()
    def release(self) -> None:
        waiting = self.due if self.order == "stamp" else {handle: self.due[handle] for handle in self.arrived}
        least = min(((stamp, *handle) for handle, stamp in waiting.items()), default=None)
        row = self.inbox.release()
        if least is None or least[1:] not in self.arrived:
            assert row is None
            return
        assert row == (least, (least[1:], self.arrived[least[1:]]))
        del self.due[least[1:]], self.arrived[least[1:]]
        self.stamps.append(least[0])

    @invariant()
    def same_rows(self) -> None:
        assert len(self.inbox) == len(self.due)
        assert self.inbox.can_advance() == any(rank != STOP for rank, _, _ in self.due)

    @invariant()
    def the_frontier_is_the_last_stamp_and_never_falls(self) -> None:
        assert self.inbox.frontier == self.stamps[-1]
        assert self.stamps == sorted(self.stamps)


class ArrivalMachine(InboxMachine):
    """The same in arrival order."""

    order = "arrival"


BUDGET = settings(max_examples=60, stateful_step_count=40)
TestStampOrder = InboxMachine.TestCase
TestStampOrder.settings = BUDGET
TestArrivalMachine = ArrivalMachine.TestCase
TestArrivalMachine.settings = BUDGET
