"""The trainer: one assign at a time, one update for each, at its due."""

from dataclasses import replace
from typing import Any

import pytest

from flame.core.effects import Compute, Emit, Send, Stop
from flame.core.events import ComputeDone, ComputeFailed, Received, Started
from flame.core.machine import IllegalEvent
from flame.core.messages import AGGREGATOR, Assign, End, Payload, Update, Weights
from flame.core.profile import Profile
from flame.core.rng import derive
from flame.core.tasks import EvalResult, Gradient, GradientResult
from flame.core.time import SECOND
from flame.roles.trainer import Trainer
from flame.telemetry.records import TaskRecv, TaskSend, TrainerRound
from tests.stage import condition, numbers

THETA, U = numbers(1.0, 2.0), numbers(0.5, 0.5)
ASSIGN = Assign(7, 3, 1, 2, 4, 10 * SECOND, 12 * SECOND, 11 * SECOND, Payload("full", {"theta": THETA}))
RESULT = GradientResult(numbers(3.0, 4.0), 0.7, 1.5, 8, 2, 4, 0.25)
RELATIVE = {"commit_order": "arrival", "pacing": "relative"}


def trainer(**changes: Any) -> Trainer:
    return Trainer(condition(**changes), Profile("t1", SECOND))


def assigned(machine: Trainer, assign: Assign = ASSIGN, now: int = 11 * SECOND) -> Compute:
    """The compute that an assign leads to."""
    (compute,) = [effect for effect in machine.step(now, Received(AGGREGATOR, assign)) if isinstance(effect, Compute)]
    return compute


def test_an_assign_is_computed_with_the_weights_that_came() -> None:
    compute = assigned(trainer(seed=5))
    assert compute.job == 7
    assert compute.task == Gradient("t1", 3, 1, derive(5, "perturb", "t1", 3, 1, 4), THETA, None)


@pytest.mark.parametrize("field", ["version", "data_id", "draw"])
def test_the_seed_hangs_on_version_bin_and_draw(field: str) -> None:
    other = replace(ASSIGN, **{field: getattr(ASSIGN, field) + 1})
    assert assigned(trainer(), other).task.seed != assigned(trainer()).task.seed  # type: ignore[union-attr]


@pytest.mark.parametrize("field", ["id", "iteration", "stamp", "due", "sent_now"])
def test_the_seed_hangs_on_nothing_else(field: str) -> None:
    other = replace(ASSIGN, **{field: getattr(ASSIGN, field) + 1})
    assert assigned(trainer(), other).task.seed == assigned(trainer()).task.seed  # type: ignore[union-attr]


def test_a_split_deals_its_shares_by_the_assigns_ids() -> None:
    split = {"type": "split", "shares": 3}
    seeds = [assigned(trainer(perturb=split), replace(ASSIGN, id=id)).task.seed for id in (7, 8, 9, 10)]  # type: ignore[union-attr]  # noqa: A001
    assert [seed % 3 for seed in seeds] == [1, 2, 0, 1]


def test_absolute_pacing_leaves_at_the_due_by_the_senders_clock() -> None:
    """receipt + (due - sent_now): the leg isn't added to D, and no two clocks are compared."""
    assert assigned(trainer(), now=111 * SECOND).not_before == 112 * SECOND


def test_relative_pacing_leaves_at_receipt_plus_d() -> None:
    assert assigned(trainer(**RELATIVE), now=111 * SECOND).not_before == 113 * SECOND


def test_the_update_echoes_its_assign_and_is_stamped_with_its_due() -> None:
    machine = trainer()
    assigned(machine)
    effects = machine.step(13 * SECOND, ComputeDone(7, RESULT, overrun=True))
    update = Update(7, 3, 1, 2, 12 * SECOND, Payload("dense", {"delta": RESULT.delta}), 8, 0.7, 1.5, 0.25)
    assert [effect for effect in effects if isinstance(effect, Send)] == [Send(AGGREGATOR, update)]
    assert Emit(TaskSend(7, "t1", 12 * SECOND)) in effects


def test_the_round_is_on_record() -> None:
    machine = trainer()
    received = machine.step(11 * SECOND, Received(AGGREGATOR, ASSIGN))[0]
    assert received == Emit(TaskRecv(7, "t1", 3, 1, 2, 10 * SECOND, 12 * SECOND))
    finished = machine.step(13 * SECOND, ComputeDone(7, RESULT, overrun=True))
    assert Emit(TrainerRound(7, "t1", 3, 1, 2, SECOND, True, 4, 2, 4, 0.7, 1.5, 5.0, 8)) in finished


def test_passes_add_up_over_jobs() -> None:
    machine = trainer()
    for number in (7, 8):
        assigned(machine, replace(ASSIGN, id=number))
        finished = machine.step(0, ComputeDone(number, RESULT))
    records = [effect.record for effect in finished if isinstance(effect, Emit)]
    assert [record.passes_total for record in records if isinstance(record, TrainerRound)] == [8]


def test_below_the_full_level_nothing_is_recorded_and_the_same_is_done() -> None:
    quiet, loud = Trainer(condition(), Profile("t1", SECOND), "commits"), trainer()
    for event in (Received(AGGREGATOR, ASSIGN), ComputeDone(7, RESULT)):
        done = [effect for effect in loud.step(0, event) if not isinstance(effect, Emit)]
        assert quiet.step(0, event) == done


class TestWeights:
    """What a trainer holds."""

    def test_none_keeps_the_weights_and_u_of_the_version(self) -> None:
        machine = trainer()
        assigned(machine, replace(ASSIGN, payload=Payload("full", {"theta": THETA, "u": U})))
        machine.step(0, ComputeDone(7, RESULT))
        task = assigned(machine, replace(ASSIGN, id=8, payload=Payload("none"))).task
        assert isinstance(task, Gradient)
        assert (task.theta, task.direction) == (THETA, U)

    def test_u_does_not_outlive_the_payload_that_it_came_with(self) -> None:
        machine = trainer()
        assigned(machine, replace(ASSIGN, payload=Payload("full", {"theta": THETA, "u": U})))
        machine.step(0, ComputeDone(7, RESULT))
        task = assigned(machine, replace(ASSIGN, id=8, version=4)).task
        assert isinstance(task, Gradient)
        assert task.direction is None

    def test_none_without_weights_is_illegal(self) -> None:
        with pytest.raises(IllegalEvent, match=r"trainer `t1` \(idle, version None\) got assign 7 without weights of version 3"):
            assigned(trainer(), replace(ASSIGN, payload=Payload("none")))

    def test_none_with_weights_of_another_version_is_illegal(self) -> None:
        machine = trainer()
        assigned(machine)
        machine.step(0, ComputeDone(7, RESULT))
        with pytest.raises(IllegalEvent, match=r"\(idle, version 3\) got assign 8 without weights of version 4"):
            assigned(machine, replace(ASSIGN, id=8, version=4, payload=Payload("none")))

    def test_a_new_incarnation_is_given_its_weights(self) -> None:
        machine = trainer()
        assert machine.step(0, Received(AGGREGATOR, Weights(3, Payload("full", {"theta": THETA, "u": U})))) == []
        task = assigned(machine, replace(ASSIGN, payload=Payload("none"))).task
        assert isinstance(task, Gradient)
        assert (task.theta, task.direction) == (THETA, U)


class TestIllegal:
    """Each says who, in which state, and what came."""

    def busy(self) -> Trainer:
        machine = trainer()
        assigned(machine)
        return machine

    def test_a_second_assign_while_busy(self) -> None:
        with pytest.raises(IllegalEvent, match=r"trainer `t1` \(busy, job 7, version 3\) got Received.*Assign\(id=8"):
            self.busy().step(0, Received(AGGREGATOR, replace(ASSIGN, id=8)))

    def test_weights_while_busy(self) -> None:
        with pytest.raises(IllegalEvent, match="busy, job 7"):
            self.busy().step(0, Received(AGGREGATOR, Weights(3, Payload("full", {"theta": THETA}))))

    def test_a_result_that_nobody_waits_for(self) -> None:
        with pytest.raises(IllegalEvent, match=r"idle, version None\) got ComputeDone"):
            trainer().step(0, ComputeDone(7, RESULT))

    def test_a_result_of_another_job(self) -> None:
        with pytest.raises(IllegalEvent, match=r"job 7, version 3\) got ComputeDone\(job=8"):
            self.busy().step(0, ComputeDone(8, RESULT))

    def test_a_result_of_another_kind(self) -> None:
        with pytest.raises(IllegalEvent, match="EvalResult"):
            self.busy().step(0, ComputeDone(7, EvalResult(1.0, 0.5, 8, [], 0.0)))

    def test_an_event_that_is_not_for_trainers(self) -> None:
        with pytest.raises(IllegalEvent, match="got Started"):
            trainer().step(0, Started())


class TestEnd:
    """A stopped trainer does nothing."""

    def test_the_end_of_the_run(self) -> None:
        machine = trainer()
        assert machine.step(0, Received(AGGREGATOR, End("12 cycles"))) == [Stop("COMPLETED", "12 cycles")]
        assert machine.describe() == "trainer `t1` (stopped, version None)"
        assert machine.step(0, Received(AGGREGATOR, ASSIGN)) == []

    def test_a_job_that_fails_twice_names_node_job_and_error(self) -> None:
        machine = trainer()
        assigned(machine)
        assert machine.step(0, ComputeFailed(7, "MemoryError: full")) == [Stop("CRASH", "`t1`: job 7 failed twice: MemoryError: full")]
        assert machine.step(0, ComputeDone(7, RESULT)) == []
