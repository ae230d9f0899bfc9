"""The one ledger: a node never has two rows, and each row ends exactly once."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from flame.core.profile import Profile
from flame.core.progress import Progress
from flame.core.trace import Trace
from flame.roles.roster import FreeNodes, Legs, Roster

NODES = [f"t{number}" for number in range(6)]


def roster_of(*nodes: str) -> Roster:
    roster = Roster()
    for number, node in enumerate(nodes):
        roster.join(node, Profile(node, 10 * (number + 1)))
    return roster


def test_a_row_has_its_due_and_its_place() -> None:
    roster = roster_of("t0", "t1")
    row = roster.dispatch("t1", 100, Progress(1, 2, 3, 4, 5), "full")
    assert (row.id, row.node, row.stamp, row.due, row.draw, row.payload) == (1, "t1", 100, 120, 0, "full")
    assert (row.version, row.data_id, row.iteration, row.cycle) == (4, 2, 3, 5)
    assert roster.dispatch("t0", 100, Progress(), "full").id == 2


@pytest.mark.parametrize(
    ("stamp", "legs", "due"),
    [
        (50, Legs(0, 0), 60),
        (50, Legs(5, 80), 145),  # it leaves at 65, and is away when it arrives
        (50, Legs(45, 7), 207),  # it is done at 105, leaves at 200
        (89, Legs(0, 500), 599),  # it leaves in its last instant
        (90, Legs(0, 500), 700),
    ],
)
def test_a_trainer_must_be_there_when_it_sends_and_not_when_that_arrives(stamp: int, legs: Legs, due: int) -> None:
    """Away from 100 to 200; D is 10."""
    roster = Roster({"t0": Trace.of([(100, "UN_AVL"), (200, "AVL_TRAIN")])})
    roster.join("t0", Profile("t0", 10))
    assert roster.due("t0", stamp, legs) == due == roster.dispatch("t0", stamp, Progress(), "full", legs).due


def test_what_leaves_before_its_trainer_goes_for_good_arrives() -> None:
    roster = Roster({"t0": Trace.of([(100, "UN_AVL")])})
    roster.join("t0", Profile("t0", 10))
    assert roster.due("t0", 80, Legs(5, 50)) == 145
    assert roster.due("t0", 95, Legs(0, 0)) is None


def test_a_node_with_a_row_cannot_be_dispatched() -> None:
    roster = roster_of("t0")
    row = roster.dispatch("t0", 0, Progress(), "full")
    with pytest.raises(KeyError):
        roster.dispatch("t0", 0, Progress(), "full")
    roster.take(row.id)  # returned, and not yet closed
    with pytest.raises(KeyError):
        roster.dispatch("t0", 0, Progress(), "full")
    roster.close([row.id])
    assert roster.dispatch("t0", 0, Progress(), "full").id == 2


def test_nobody_joins_twice() -> None:
    with pytest.raises(ValueError, match="`t0` is in the roster already"):
        roster_of("t0", "t0")


def test_held_is_the_last_version_that_was_sent() -> None:
    roster = roster_of("t0")
    seen: list[int | None] = [roster.members["t0"].held]
    for version, payload in ((0, "full"), (1, "none"), (2, "full")):
        roster.reject(roster.dispatch("t0", 0, Progress(model_version=version), payload).id)
        seen.append(roster.members["t0"].held)
    assert seen == [None, 0, 0, 2]


def test_draws_count_within_a_version_and_a_bin() -> None:
    roster = roster_of("t0", "t1")
    draws = []
    for version, data_id in ((0, 0), (0, 0), (0, 1), (1, 1), (1, 1), (0, 1)):
        row = roster.dispatch("t0", 0, Progress(data_id=data_id, model_version=version), "full")
        draws.append(row.draw)
        roster.reject(row.id)
    assert draws == [0, 1, 0, 0, 1, 0]
    assert roster.dispatch("t1", 0, Progress(), "full").draw == 0


@pytest.mark.parametrize("verb", ["take", "reject"])
def test_a_row_ends_once(verb: str) -> None:
    roster = roster_of("t0")
    row = roster.dispatch("t0", 0, Progress(), "full")
    getattr(roster, verb)(row.id)
    for other in ("take", "reject"):
        with pytest.raises(KeyError):
            getattr(roster, other)(row.id)


def test_only_what_was_taken_can_be_closed() -> None:
    roster = roster_of("t0")
    row = roster.dispatch("t0", 0, Progress(), "full")
    with pytest.raises(KeyError):
        roster.close([row.id])


def test_who_leaves_with_a_taken_row_holds_its_slot_to_the_close_and_is_not_free_then() -> None:
    roster = roster_of("t0")
    row = roster.dispatch("t0", 0, Progress(), "full")
    roster.take(row.id)
    assert roster.leave("t0") is None
    assert (roster.in_flight, roster.members["t0"].row) == (1, row)
    roster.close([row.id])
    assert (roster.in_flight, roster.members["t0"].row, list(roster.free)) == (0, None, [])


def test_who_leaves_with_an_open_row_takes_it_along() -> None:
    roster = roster_of("t0")
    row = roster.dispatch("t0", 0, Progress(), "full")
    assert roster.leave("t0") is row
    assert (roster.in_flight, roster.members["t0"].row, list(roster.free)) == (0, None, [])
    assert roster.leave("t0") is None
    assert roster.leave("t9") is None


def test_equal_histories_show_as_equal_and_others_do_not() -> None:
    def history(*verbs: tuple[str, str]) -> bytes:
        roster = roster_of("t0", "t1")
        for verb, node in verbs:
            if verb == "dispatch":
                roster.dispatch(node, 0, Progress(), "full")
            elif verb == "leave":
                roster.leave(node)
            else:
                row = roster.members[node].row
                assert row is not None
                getattr(roster, verb)(row.id if verb != "close" else [row.id])
        return roster.ledger

    both = (("dispatch", "t0"), ("dispatch", "t1"))
    histories = [
        (), both, both[::-1], both[:1], (*both, ("take", "t0")), (*both, ("take", "t1")), (*both, ("reject", "t0")),
        (*both, ("take", "t0"), ("close", "t0")), (*both, ("leave", "t0")), (("leave", "t0"),),
    ]  # fmt: skip
    assert [history(*verbs) for verbs in histories] == [history(*verbs) for verbs in histories]
    assert len({history(*verbs) for verbs in histories}) == len(histories)
    assert len({roster_of(*nodes).ledger for nodes in ([], ["t0"], ["t1"], ["t0", "t1"], ["t1", "t0"])}) == 5


class TestFreeNodes:
    """Indexable in O(1), with a fingerprint of the set."""

    @given(st.lists(st.sampled_from(NODES), unique=True), st.randoms(use_true_random=False))
    def test_the_fingerprint_does_not_depend_on_the_order(self, nodes: list[str], rng: Any) -> None:
        one, other = FreeNodes(), FreeNodes()
        for node in nodes:
            one.add(node)
        for node in rng.sample(nodes, len(nodes)):
            other.add(node)
        assert one.fingerprint == other.fingerprint
        assert len(one.fingerprint) == 16

    def test_different_sets_have_different_fingerprints(self) -> None:
        prints = set()
        for chosen in range(2 ** len(NODES)):
            free = FreeNodes()
            for number, node in enumerate(NODES):
                if chosen >> number & 1:
                    free.add(node)
            prints.add(free.fingerprint)
        assert len(prints) == 2 ** len(NODES)

    def test_the_last_node_takes_the_place_of_the_one_that_goes(self) -> None:
        free = FreeNodes()
        for node in "abcd":
            free.add(node)
        free.remove("b")
        assert list(free) == ["a", "d", "c"]
        assert (free[1], free[0:2], len(free), "b" in free, "d" in free) == ("d", ["a", "d"], 3, False, True)
        free.remove("c")
        assert list(free) == ["a", "d"]

    def test_only_a_free_node_can_be_removed(self) -> None:
        free = FreeNodes()
        free.add("a")
        with pytest.raises(KeyError):
            free.remove("b")
        assert list(free) == ["a"]


def test_a_standing_changes_when_an_update_is_taken() -> None:
    roster = roster_of("t0", "t1")
    standing = roster.standings["t1"]
    assert (standing.utility, standing.last, standing.count, standing.duration) == (0.0, 0, 0, 20)
    refused, taken = (roster.dispatch(node, 0, Progress(), "full") for node in ("t0", "t1"))
    roster.reject(refused.id)
    assert (standing.utility, standing.count, roster.standings["t0"].count) == (0.0, 0, 0)
    roster.take(taken.id, 7, 2.5)
    assert (standing.utility, standing.last, standing.count) == (2.5, 7, 1)
    roster.close([taken.id])
    roster.take(roster.dispatch("t1", 0, Progress(), "full").id, 9, 0.5)
    assert (standing.utility, standing.last, standing.count) == (0.5, 9, 2)


@pytest.mark.parametrize("utility", [float("nan"), float("inf"), float("-inf")])
def test_a_utility_that_is_no_number_is_none(utility: float) -> None:
    roster = roster_of("t0")
    roster.take(roster.dispatch("t0", 0, Progress(), "full").id, 3, utility)
    assert (roster.standings["t0"].utility, roster.standings["t0"].count) == (0.0, 1)


def test_standings_can_only_be_looked_at() -> None:
    roster = roster_of("t0")
    with pytest.raises(TypeError):
        roster.standings["t1"] = roster.members["t0"]  # type: ignore[index]
    roster.join("t1", Profile("t1", 5))
    assert list(roster.standings) == ["t0", "t1"]


def test_unexplored_are_the_present_ones_without_an_update() -> None:
    roster = roster_of("t0", "t1", "t2")
    first, second = (roster.dispatch(node, 0, Progress(), "full") for node in ("t0", "t1"))
    assert roster.unexplored == 3
    roster.take(first.id)
    roster.leave("t0")
    assert roster.unexplored == 2
    roster.leave("t1")  # its row is void
    roster.leave("t1")
    assert roster.unexplored == 1
    assert second.id not in roster.open


class Unsearched(list[str]):
    """A list that nobody may walk over."""

    def refuse(self, *_: object) -> Any:
        raise AssertionError("the free nodes were walked over")

    __iter__ = __contains__ = index = remove = insert = count = copy = refuse


def test_no_move_walks_over_the_free_nodes() -> None:
    """With 10^5 clients the cost of one dispatch must not grow with the number of clients."""
    roster = roster_of(*NODES)
    roster.free._nodes = Unsearched(roster.free._nodes)
    for node in (*NODES, *NODES):
        roster.reject(roster.dispatch(node, 0, Progress(), "full").id)
    row = roster.dispatch("t0", 0, Progress(), "full")
    roster.take(row.id)
    roster.close([row.id])
    roster.leave("t3")
    roster.join("t9", Profile("t9", 1))
    assert (len(roster.free), len(roster.free.fingerprint)) == (6, 16)


class RosterMachine(RuleBasedStateMachine):
    """Against a naive model: a list of rows, each in one state, and a set of who is there."""

    def __init__(self) -> None:
        super().__init__()
        self.roster = Roster()
        self.state: dict[int, str] = {}
        self.owner: dict[int, str] = {}
        self.there: set[str] = set()
        self.known: set[str] = set()
        self.sent: dict[str, list[tuple[int, int]]] = {}

    def rows(self, state: str) -> list[int]:
        return [number for number, its in self.state.items() if its == state]

    def working(self) -> set[str]:
        return {self.owner[number] for number in self.rows("open") + self.rows("taken")}

    def free(self) -> set[str]:
        return self.there - self.working()

    @initialize()
    def some_are_there(self) -> None:
        for node in NODES[:4]:
            self.join(node)

    @precondition(lambda self: self.free())
    @rule(data=st.data(), version=st.integers(0, 1), data_id=st.integers(0, 1))
    def dispatch_free(self, data: st.DataObject, version: int, data_id: int) -> None:
        self.dispatch(data.draw(st.sampled_from(sorted(self.free()))), version, data_id)

    @precondition(lambda self: self.working())
    @rule(data=st.data())
    def leave_at_work(self, data: st.DataObject) -> None:
        self.leave(data.draw(st.sampled_from(sorted(self.working()))))

    @rule(node=st.sampled_from(NODES))
    def join(self, node: str) -> None:
        if node in self.known:
            with pytest.raises(ValueError, match="already"):
                self.roster.join(node, Profile(node, 5))
            return
        self.roster.join(node, Profile(node, 5))
        self.there.add(node)
        self.known.add(node)

    @rule(node=st.sampled_from(NODES))
    def leave(self, node: str) -> None:
        mine = [number for number in self.rows("open") if self.owner[number] == node]
        row = self.roster.leave(node)
        assert (row.id if row else None) == (mine[0] if mine and node in self.there else None)
        if row is not None:
            self.state[row.id] = "void"
        self.there.discard(node)

    @rule(node=st.sampled_from(NODES), version=st.integers(0, 1), data_id=st.integers(0, 1))
    def dispatch(self, node: str, version: int, data_id: int) -> None:
        at = Progress(0, data_id, 0, version, 0)
        if node not in self.free():
            with pytest.raises(KeyError):
                self.roster.dispatch(node, 7, at, "full")
            return
        row = self.roster.dispatch(node, 7, at, "full")
        assert row.id not in self.state
        assert row.due == 12
        history = self.sent.setdefault(node, [])
        run = next((n for n, bin_ in enumerate(reversed(history)) if bin_ != (version, data_id)), len(history))
        assert row.draw == run
        history.append((version, data_id))
        self.state[row.id], self.owner[row.id] = "open", node

    @precondition(lambda self: self.rows("open"))
    @rule(data=st.data(), verb=st.sampled_from(["take", "reject"]))
    def judge(self, data: st.DataObject, verb: str) -> None:
        number = data.draw(st.sampled_from(self.rows("open")))
        row = getattr(self.roster, verb)(number)
        assert (row.id, row.node) == (number, self.owner[number])
        self.state[number] = "taken" if verb == "take" else "rejected"

    @precondition(lambda self: self.rows("taken"))
    @rule(data=st.data())
    def close(self, data: st.DataObject) -> None:
        cohort = data.draw(st.lists(st.sampled_from(self.rows("taken")), unique=True))
        self.roster.close(cohort)
        self.state |= dict.fromkeys(cohort, "closed")

    @precondition(lambda self: self.state)
    @rule(data=st.data(), verb=st.sampled_from(["take", "reject"]))
    def judge_what_has_ended(self, data: st.DataObject, verb: str) -> None:
        number = data.draw(st.sampled_from(sorted(self.state)))
        if self.state[number] != "open":
            with pytest.raises(KeyError):
                getattr(self.roster, verb)(number)

    @invariant()
    def the_ledger_is_the_models(self) -> None:
        assert sorted(self.roster.open) == self.rows("open")
        assert sorted(self.roster.taken) == sorted(self.rows("taken"))
        assert self.roster.in_flight == len(self.rows("open")) + len(self.rows("taken"))
        assert sorted(self.roster.free) == sorted(self.free())
        assert len(self.roster.free) == len(self.free())

    @invariant()
    def the_unexplored_are_counted(self) -> None:
        present = [member for member in self.roster.members.values() if not member.gone]
        assert self.roster.unexplored == sum(member.count == 0 for member in present)

    @invariant()
    def no_node_has_two_rows(self) -> None:
        rows = [row.node for row in (*self.roster.open.values(), *self.roster.taken.values())]
        assert len(rows) == len(set(rows))
        for row in (*self.roster.open.values(), *self.roster.taken.values()):
            assert self.roster.members[row.node].row is row

    @invariant()
    def the_fingerprint_is_of_the_free_set(self) -> None:
        fresh = FreeNodes()
        for node in sorted(self.free()):
            fresh.add(node)
        assert self.roster.free.fingerprint == fresh.fingerprint


TestRoster = RosterMachine.TestCase
TestRoster.settings = settings(max_examples=60, stateful_step_count=40)
