"""Comings and goings: planned ones are rows, unplanned ones are intrusions."""

import pytest

from flame.core.effects import CancelTimer, SetTimer
from flame.core.events import PeerDown, PeerUp, Started
from flame.core.machine import IllegalEvent
from flame.core.profile import Profile
from flame.core.time import SECOND
from flame.roles.inbox import FAULT, JOIN
from flame.telemetry.records import AggRound, Fault, Intrusion, Peer, RunEnd
from tests.stage import Stage, condition


def test_nothing_is_dispatched_before_everybody_is_there() -> None:
    stage = Stage(condition())
    stage.up(["t0", "t2"])
    with pytest.raises(IllegalEvent, match=r"aggregator \(gathering, .*without t1"):
        stage.step(Started())


def test_not_all_who_are_missing_are_named() -> None:
    stage = Stage(condition(trainers=8))
    with pytest.raises(IllegalEvent, match=r"without t0, t1, t2, t3, t4$"):
        stage.step(Started())


def test_ready_comes_once() -> None:
    stage = Stage(condition())
    stage.start()
    with pytest.raises(IllegalEvent, match=r"aggregator \(running, round 0, .* got Started"):
        stage.step(Started())


def test_a_stranger_is_illegal() -> None:
    with pytest.raises(IllegalEvent, match=r"PeerUp.*`t9` isn't one of the 3 trainers"):
        Stage(condition()).step(PeerUp("t9", Profile("t9", SECOND)))


def test_a_peer_that_is_lost_while_gathering_is_missing() -> None:
    stage = Stage(condition())
    stage.up()
    stage.step(PeerDown("t1", "its worker died"))
    with pytest.raises(IllegalEvent, match="without t1"):
        stage.step(Started())
    stage.up(["t1"])
    assert set(stage.step(Started()).assigns) == {"t0", "t1", "t2"}


def test_a_peer_that_comes_again_changes_nothing() -> None:
    stage = Stage(condition())
    stage.start()
    assert stage.step(PeerUp("t1", Profile("t1", 99 * SECOND))).effects == []
    stage.answer(1)
    heard = stage.answer(2)
    assert heard.assigns["t1"].due - heard.assigns["t1"].stamp == 2 * SECOND


class TestPlanned:
    """t2 comes at 1.5 s, t0 leaves at 2.5 s."""

    def stage(self) -> Stage:
        return Stage(condition(population={"joins": {"t2": 1.5}, "leaves": {"t0": 2.5}}))

    def test_the_plan_is_set_as_timers_at_stamp_0(self) -> None:
        heard = self.stage().start()
        keys = [(timer.key, timer.at) for timer in heard.of(SetTimer)]
        assert keys == [((1_500_000_000, JOIN, "t2", 0), 1_500_000_000), ((2_500_000_000, FAULT, "t0", 0), 2_500_000_000)]
        assert set(heard.assigns) == {"t0", "t1"}

    def test_a_join_waits_for_its_turn_and_gets_work_at_its_stamp(self) -> None:
        stage = self.stage()
        stage.start()
        assert stage.timer(1.5, JOIN, "t2").effects == []  # t0's update of 1 s is still out
        heard = stage.answer(1, at=1.6)
        assert [key[1:3] for key in stage.machine.released] == [(5, "t0"), (JOIN, "t2")]
        assert heard.assigns["t2"].stamp == 1_500_000_000
        assert heard.records(Peer) == [Peer("t2", up=True, why="planned", planned=True)]

    def test_who_leaves_loses_its_open_row_and_is_not_asked_again(self) -> None:
        stage = self.stage()
        stage.start()
        stage.answer(1)
        stage.timer(1.5, JOIN, "t2")
        stage.answer(2)  # closes; t0 and t1 get new work at 2 s
        heard = stage.timer(2.5, FAULT, "t0")
        assert heard.records(Peer) == [Peer("t0", up=False, why="planned", planned=True)]
        assert heard.records(Intrusion) == []
        assert stage.machine.voids == 1
        late = stage.answer(4)
        assert [fault.what for fault in late.records(Fault)] == ["dropped"]
        assert stage.machine.accepts == 2

    def test_who_leaves_with_a_taken_update_counts_to_the_close(self) -> None:
        stage = Stage(condition(population={"leaves": {"t0": 1.5}}))
        stage.start()
        stage.answer(1)
        heard = stage.timer(1.5, FAULT, "t0")
        assert heard.assigns == {}
        assert stage.machine.voids == 0
        close = stage.answer(2)
        assert [member.trainer for member in close.records(AggRound)[0].cohort] == ["t0", "t1"]
        assert set(close.assigns) == {"t1"}


class TestLost:
    """PeerDown: an intrusion, which voids and goes on."""

    def test_the_open_row_is_voided_and_the_run_goes_on(self) -> None:
        stage = Stage(condition(trainers=4))
        stage.start()
        heard = stage.step(PeerDown("t0", "respawns are spent"), at=0.5)
        (intrusion,) = heard.records(Intrusion)
        assert (intrusion.what, intrusion.voided) == ("lost `t0`: respawns are spent", [1])
        assert set(heard.assigns) == {"t3"}
        assert heard.assigns["t3"].stamp == 0  # the current stamp, not `now`
        assert stage.machine.roster.in_flight == 3

    def test_a_late_update_of_a_voided_id_is_counted_and_dropped(self) -> None:
        stage = Stage(condition(trainers=4))
        stage.start()
        stage.step(PeerDown("t0", "silent"))
        heard = stage.answer(1)
        assert heard.records(Fault) == [Fault("dropped", "t0", "update 1: nothing waits for it, or it came before")]
        assert (stage.machine.voids, stage.machine.accepts) == (1, 0)

    def test_what_has_arrived_of_a_lost_peer_is_void_too(self) -> None:
        stage = Stage(condition(trainers=4))
        stage.start()
        stage.answer(2)  # waits for t0's
        stage.step(PeerDown("t1", "gone"))
        stage.answer(1)
        assert stage.machine.accepts == 1

    def test_a_lost_peer_that_is_idle_is_not_asked_again(self) -> None:
        stage = Stage(condition(goal=1, concurrency=1))
        stage.start()
        stage.step(PeerDown("t1", "gone"))
        assert set(stage.answer(1).assigns) == {"t0"}
        assert "t1" not in stage.machine.roster.free

    def test_it_is_lost_once(self) -> None:
        stage = Stage(condition(trainers=4))
        stage.start()
        stage.step(PeerDown("t0", "gone"))
        again = stage.step(PeerDown("t0", "gone"))
        assert again.records(Intrusion)[0].voided == []
        assert stage.machine.voids == 1

    def test_who_is_lost_before_a_planned_join_never_joins(self) -> None:
        """Else it would be sent work, and everybody would wait for it for ever."""
        stage = Stage(condition(population={"joins": {"t2": 1.5}}))
        stage.start()
        heard = stage.step(PeerDown("t2", "gone"))
        assert heard.of(CancelTimer) == [CancelTimer((1_500_000_000, JOIN, "t2", 0))]
        fired = stage.timer(1.5, JOIN, "t2")  # the driver cancels it; even if it fired:
        assert [fault.what for fault in fired.records(Fault)] == ["dropped"]
        assert "t2" not in stage.answer(1).assigns | stage.answer(2).assigns
        assert "t2" not in stage.machine.roster.members

    def test_losing_too_many_is_found_out(self) -> None:
        stage = Stage(condition())
        stage.start()
        stage.step(PeerDown("t0", "gone"))
        assert stage.step(PeerDown("t1", "gone")).stop is None  # t2's update is still to come
        heard = stage.answer(3)
        assert heard.stop is not None
        assert heard.stop.verdict == "STARVED"
        assert "t0: is gone" in heard.stop.reason
        (end,) = heard.records(RunEnd)
        assert (end.verdict, end.accepts, end.voids) == ("STARVED", 1, 2)


def test_a_sync_cohort_asks_for_one_more_when_it_loses_a_member() -> None:
    stage = Stage(condition(loop="sync", trainers=4, goal=2, concurrency=2, population={"leaves": {"t0": 0.5}}))
    assert set(stage.start().assigns) == {"t0", "t1"}
    assert set(stage.timer(0.5, FAULT, "t0").assigns) == {"t2"}
    assert stage.machine.cycle.quota == 0
    stage.answer(2)
    assert len(stage.answer(3).records(AggRound)) == 1


def test_losing_a_straggler_of_an_earlier_cycle_asks_for_nobody() -> None:
    stage = Stage(condition(loop="sync", trainers=4, goal=1, concurrency=2, population={"leaves": {"t1": 1.5}}))
    stage.start()
    assert set(stage.answer(1).assigns) == {"t0"}  # t1 is still out
    assert stage.timer(1.5, FAULT, "t1").assigns == {}
    assert stage.machine.cycle.quota == 0
