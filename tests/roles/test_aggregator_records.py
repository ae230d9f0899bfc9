"""What the aggregator says of itself: the records of a choice, the levels, and the table of who holds it up."""

from math import log, sqrt
from typing import Any

import pytest

from flame.core.effects import Emit
from flame.core.events import PeerDown
from flame.core.progress import Progress
from flame.core.time import SECOND
from flame.policies.select import Random, SelectView
from flame.roles.roster import FreeNodes
from flame.roles.stuck import SHOWN, stuck_table
from flame.telemetry.records import Accepted, AggRound, Contributor, Dispatch, Level, Score, Selection
from tests.stage import Heard, Stage, condition


def fingerprint(*nodes: str) -> str:
    free = FreeNodes()
    for node in nodes:
        free.add(node)
    return free.fingerprint


def test_a_selection_says_among_whom_it_was_made() -> None:
    stage = Stage(condition(trainers=4, concurrency=3))
    (first,) = stage.start().records(Selection)
    assert (first.candidates, first.eligible, first.chosen, first.in_flight, first.pending) == (4, 4, ["t0", "t1", "t2"], 0, 0)
    assert (first.goal, first.concurrency, first.policy) == (2, 3, "all")
    assert first.eligible_fp == fingerprint("t0", "t1", "t2", "t3")
    stage.answer(1)
    (second,) = stage.answer(2).records(Selection)
    assert (second.eligible, second.chosen, second.in_flight) == (3, ["t0", "t1"], 1)
    assert second.eligible_fp == fingerprint("t0", "t1", "t3")
    assert second.at.cycle == 1  # after the close


def test_a_selection_tells_the_scores_of_whom_it_chose() -> None:
    stage = Stage(condition(goal=1, concurrency=2, trainers=2, select="async_oort"))
    (first,) = stage.start().records(Selection)
    assert first.scores == [Score("t0", "explore", 1.0, None, None, 1.0), Score("t1", "explore", 0.25, None, None, 0.25)]
    (second,) = stage.answer(1).records(Selection)
    assert second.scores is not None
    (score,) = second.scores
    # U = 2 is the only one: (2 - 1.998) / 0.002; R = 2, and the update was taken in cycle 1
    assert (score.trainer, score.penalty) == ("t0", 1.0)
    assert score.how in ("exploit", "fill")
    assert score.utility == pytest.approx(1.0)
    assert score.uncertainty == pytest.approx(sqrt(0.1 * log(2)))
    assert score.score == pytest.approx(1.0 + sqrt(0.1 * log(2)))


def test_who_scores_nobody_tells_none() -> None:
    assert [record.scores for record in Stage(condition()).start().records(Selection)] == [None]


def test_each_selection_is_a_draw_of_its_own_ordinal() -> None:
    stage = Stage(condition(trainers=9, goal=1, concurrency=1, select="random", seed=4, delays={"values": [1]}))
    free, steps = FreeNodes(), [stage.start(), *(stage.answer(number) for number in range(1, 8))]
    for node in stage.condition.nodes:
        free.add(node)
    for ordinal, step in enumerate(steps):
        (chosen,), _ = Random().choose(SelectView(free, Progress(), 4, ordinal), 1, None)
        assert list(step.assigns) == [chosen]
        free.remove(chosen)  # and back again at the close: the order of the ledger is part of the draw
        free.add(chosen)


def test_pending_are_the_accepted_that_wait_for_their_close() -> None:
    stage = Stage(condition(trainers=4, goal=3, population={"leaves": {"t2": 1.5}}))
    stage.start()
    stage.answer(1)
    (refill,) = stage.timer(1.5, 1, "t2").records(Selection)
    assert (refill.pending, refill.in_flight, refill.chosen) == (1, 2, ["t3"])


def test_a_dispatch_and_its_answer_tell_the_same_interval() -> None:
    stage = Stage(condition(loop="async", goal=1, concurrency=2, trainers=2))
    dispatched = {record.id: record for record in stage.start().records(Dispatch)}
    assert (dispatched[2].stamp_ns, dispatched[2].due_ns, dispatched[2].delay_ns, dispatched[2].in_flight) == (0, 2 * SECOND, 2 * SECOND, 2)
    assert dispatched[1].in_flight == 1
    (again,) = stage.answer(1).records(Dispatch)
    assert (again.stamp_ns, again.due_ns, again.delay_ns) == (SECOND, 2 * SECOND, SECOND)
    stage.answer(3)
    (judged,) = stage.answer(2).records(Accepted)
    assert (judged.id, judged.trainer, judged.interval_ns, judged.staleness, judged.rate) == (2, "t1", (0, 2 * SECOND), 2, 1.0)
    assert (judged.at.model_version, judged.version, judged.loss, judged.utility) == (2, 0, 1.0, 2.0)


def test_a_close_lists_its_cohort_in_commit_order() -> None:
    stage = Stage(condition(goal=1, concurrency=2, trainers=2))
    stage.start()
    stage.answer(1)
    stage.answer(3)
    (close,) = stage.answer(2).records(AggRound)
    assert close.cohort == [Contributor("t1", 2, 0, 2 * SECOND, 2, 1.0)]
    assert (close.in_flight, close.accepts, close.rejects, close.goal, close.concurrency) == (1, 3, 0, 1, 2)
    for number in (4, 6):
        stage.answer(number)
    (later,) = stage.answer(5).records(AggRound)  # t1's of version 3, after t0's of 3 s and 4 s
    assert later.cohort == [Contributor("t1", 5, 2 * SECOND, 4 * SECOND, 2, 1.0)]


def run(level: Level) -> list[Heard]:
    stage = Stage(condition(eval={"every": 1}, population={"leaves": {"t2": 9.0}}), level=level)
    return [stage.start(), stage.answer(1), stage.answer(2), stage.scored(1), stage.step(PeerDown("t0", "gone"))]


def test_a_lower_level_decides_the_same_and_makes_fewer_records() -> None:
    def acts(heard: list[Heard]) -> list[Any]:
        return [[effect for effect in step.effects if not isinstance(effect, Emit)] for step in heard]

    def kinds(heard: list[Heard]) -> set[str]:
        return {effect.record.kind for step in heard for effect in step.effects if isinstance(effect, Emit)}

    full, summary = run("full"), run("summary")
    assert acts(full) == acts(summary)
    assert kinds(summary) == {"agg_round", "agg_eval", "intrusion"}
    assert kinds(full) == kinds(summary) | {"selection", "dispatch", "accepted"}


class TestStuckTable:
    """One line a trainer, and not a thousand of them."""

    def test_each_state_has_its_words(self) -> None:
        stage = Stage(condition(trainers=5, goal=2, concurrency=2, population={"joins": {"t4": 9.0}, "leaves": {"t1": 0.5}}))
        stage.start()
        stage.timer(0.5, 1, "t1")
        stage.answer(1)
        assert stuck_table(stage.machine).splitlines() == [
            "  cycle 0 (round 0, bin 0, iteration 0, version 0) has 1 of 2 accepts",
            "  t1: is gone",
            "  t4: has not joined",
            "  t0: update 1 is taken, and waits for the close",
            "  t2: assign 3 is open, due 00:00:03.500",
            "  t3: is free, and was not chosen",
        ]

    def test_what_does_not_fit_is_counted(self) -> None:
        stage = Stage(condition(trainers=SHOWN + 3))
        stage.start()
        lines = stuck_table(stage.machine).splitlines()
        assert len(lines) == SHOWN + 2
        assert lines[-2].startswith("  t19: ")
        assert lines[-1] == "  ... and 3 more"

    def test_exactly_as_many_as_fit(self) -> None:
        stage = Stage(condition(trainers=SHOWN))
        stage.start()
        assert stuck_table(stage.machine).splitlines()[-1].startswith("  t19: ")
