"""The end: stop rules, evaluations that are waited for, blocking ones, budgets to the nanosecond."""

from typing import Any

import pytest

from flame.config.stops import Stall, StopRules
from flame.core.effects import SetTimer, Stop
from flame.core.events import PeerDown, TimerFired
from flame.core.time import SECOND
from flame.roles.inbox import EVAL, JOIN, OWN, STOP, UPDATE
from flame.telemetry.records import AggEval, AggRound, Fault, Intrusion, RunEnd
from tests.stage import Heard, Stage, condition


def started(**changes: object) -> Stage:
    stage = Stage(condition(**changes))
    stage.start()
    return stage


def one_at_a_time(**changes: object) -> Stage:
    """One trainer, delay 1 s, K = C = 1: an update a second, each closes."""
    return started(trainers=1, goal=1, concurrency=1, **changes)


class TestStopRules:
    """Logical progress ends a run; the first rule that holds says so."""

    @pytest.mark.parametrize(
        ("rules", "closes", "reason"),
        [
            ({"cycles": 3}, 3, "3 cycles"),
            ({"commits": 2}, 4, "2 commits"),
            ({"accepts": 3}, 3, "3 accepts"),
            ({"accepts": 9, "cycles": 3}, 3, "3 cycles"),
            ({"commits": 2, "cycles": 4}, 4, "4 cycles"),
        ],
    )
    def test_each_count_ends_the_run_when_it_is_reached(self, rules: dict[str, int], closes: int, reason: str) -> None:
        stage = one_at_a_time(stop=rules, commit=[{"type": "cap", "max": 2}])
        for number in range(1, closes):
            assert stage.answer(number).stop is None
        heard = stage.answer(closes)
        assert heard.stop == Stop("COMPLETED", reason)
        assert heard.assigns == {}

    def test_accepts_are_looked_at_when_a_cycle_closes(self) -> None:
        stage = started(stop={"accepts": 1})
        assert stage.answer(1).stop is None
        assert stage.answer(2).stop == Stop("COMPLETED", "2 accepts")

    def test_the_last_record_says_how_it_ended(self) -> None:
        stage = one_at_a_time(stop={"cycles": 1})
        heard = stage.answer(1)
        (end,) = heard.records(RunEnd)
        assert (end.verdict, end.reason, end.accepts, end.rejects, end.voids, end.at.cycle) == ("COMPLETED", "1 cycles", 1, 0, 0, 1)
        assert isinstance(heard.effects[-1], Stop)

    def test_what_is_in_flight_at_the_stop_counts_nowhere(self) -> None:
        stage = started(stop={"cycles": 1}, eval={"every": 1, "seconds": 9.0})
        stage.answer(1)
        assert stage.answer(2).stop is None
        assert stage.answer(3).effects == []  # not even a fault: nobody waits for it
        assert stage.machine.accepts == 2


class TestBudget:
    """`runtime_s` is a budget of stamps: the first row beyond it isn't released."""

    def budget(self, runtime_s: float) -> tuple[Heard, Stage]:
        stage = one_at_a_time(stop={"runtime_s": runtime_s})
        stage.answer(1, at=5.0)  # late by the wall, at 1 s by its stamp
        stop_at = round(runtime_s * SECOND) + 1
        return stage.step(TimerFired((stop_at, STOP, OWN, 0))), stage

    def test_a_row_at_the_budget_is_released(self) -> None:
        heard, stage = self.budget(1.0)
        assert stage.machine.accepts == 1
        assert heard.stop == Stop("COMPLETED", "the budget of 1.0 s of stamp time is spent")

    def test_a_row_one_nanosecond_beyond_it_is_not(self) -> None:
        stage = one_at_a_time(stop={"runtime_s": 0.999999999})
        assert stage.answer(1).effects == []  # arrived first, and still waits
        heard = stage.step(TimerFired((SECOND, STOP, OWN, 0)))
        assert heard.stop is not None
        assert stage.machine.accepts == 0

    def test_the_timer_stands_one_nanosecond_beyond_it(self) -> None:
        heard = Stage(condition(stop={"runtime_s": 2.5})).start()
        assert [timer.at for timer in heard.of(SetTimer)] == [2_500_000_001]

    def test_evaluations_that_are_out_are_waited_for(self) -> None:
        stage = one_at_a_time(stop={"runtime_s": 1.5}, eval={"every": 1, "seconds": 3.0})
        stage.answer(1)
        heard = stage.timer(1.500000001, STOP)
        assert heard.stop is None
        assert stage.machine.phase == "closing"
        heard = stage.scored(1, at=4.0)
        assert [record.version for record in heard.records(AggEval)] == [1]
        assert heard.stop is not None
        assert heard.stop.reason == "the budget of 1.5 s of stamp time is spent"


class TestEvaluation:
    """An evaluation is a row at commit stamp + eval_s."""

    def test_it_asks_for_the_model_that_was_committed(self) -> None:
        stage = one_at_a_time(eval={"every": 1, "seconds": 0.25})
        (asked,) = stage.answer(1, 3.0, 4.0).evaluations
        assert (asked.job, asked.not_before) == (1, 1_250_000_000)
        assert asked.task.theta == stage.machine.theta
        assert stage.theta == (-3.0, -4.0)

    def test_every_counts_commits(self) -> None:
        stage = one_at_a_time(eval={"every": 2})
        asked = [stage.answer(1).evaluations, stage.answer(2).evaluations]
        assert [len(list_) for list_ in asked] == [0, 1]

    def test_a_cycle_that_is_kept_is_not_evaluated(self) -> None:
        stage = one_at_a_time(eval={"every": 1}, commit=[{"type": "cap", "max": 2}])
        assert stage.answer(1).evaluations == []
        assert len(stage.answer(2).evaluations) == 1

    def test_never_is_a_value(self) -> None:
        stage = one_at_a_time(eval={"every": 0})
        assert stage.answer(1).evaluations == []

    def test_nothing_later_is_released_before_it(self) -> None:
        stage = one_at_a_time(eval={"every": 1, "seconds": 0.5})
        stage.answer(1)
        assert stage.answer(2).effects == []  # due 2 s, the evaluation 1.5 s
        heard = stage.scored(1, 0.75)
        assert stage.machine.released == [(1_500_000_000, EVAL, OWN, 1), (2 * SECOND, UPDATE, "t0", 2)]
        (record,) = heard.records(AggEval)
        assert (record.version, record.stamp_ns, record.accuracy, record.recall) == (1, 1_500_000_000, 0.75, [0.75, None])
        assert record.at.model_version == 1  # where the run stood before the next decision

    def test_uncharged_it_precedes_updates_of_the_same_stamp(self) -> None:
        stage = started(goal=1, concurrency=2, trainers=2, delays={"values": [1.0, 1.0]}, eval={"every": 1})
        stage.answer(2)
        assert len(stage.answer(1).evaluations) == 1
        assert stage.machine.released == [(SECOND, UPDATE, "t0", 1)]
        stage.scored(1)
        assert stage.machine.released == [(SECOND, EVAL, OWN, 1), (SECOND, UPDATE, "t1", 2)]

    def test_not_blocking_it_leaves_the_stamps_alone(self) -> None:
        stage = one_at_a_time(eval={"every": 1, "seconds": 0.5})
        assert stage.answer(1).assigns["t0"].stamp == SECOND

    def test_blocking_it_moves_the_stamps_of_what_is_dispatched(self) -> None:
        """max(cause, commit stamp + eval_s): t1, whose cause is before the evaluation's end, waits for it too."""
        stage = started(goal=1, concurrency=2, delays={"values": [1.0, 1.25, 5.0]}, eval={"every": 1, "seconds": 0.5, "blocks": True})
        first = stage.answer(1).assigns["t0"]
        assert (first.stamp, first.due) == (1_500_000_000, 2_500_000_000)
        second = stage.answer(2).assigns["t1"]
        assert (second.stamp, second.due) == (1_750_000_000, 3_000_000_000)

    def test_a_cause_after_the_block_is_its_own_stamp(self) -> None:
        stage = started(eval={"every": 1, "seconds": 0.5, "blocks": True}, population={"joins": {"t2": 4.0}})
        stage.answer(1)
        assert {assign.stamp for assign in stage.answer(2).assigns.values()} == {2_500_000_000}
        stage.scored(1)
        stage.answer(3)
        assert stage.timer(4.0, JOIN, "t2").assigns["t2"].stamp == 4 * SECOND

    def test_the_last_one_is_waited_for_at_the_stop(self) -> None:
        stage = one_at_a_time(stop={"cycles": 1}, eval={"every": 1, "seconds": 0.5})
        heard = stage.answer(1)
        assert (heard.stop, heard.assigns) == (None, {})
        assert len(heard.evaluations) == 1
        heard = stage.scored(1)
        assert heard.stop == Stop("COMPLETED", "1 cycles")
        assert [type(effect).__name__ for effect in heard.effects] == ["Emit", "Emit", "Stop"]

    def test_at_the_stop_all_that_are_out_are_waited_for(self) -> None:
        stage = one_at_a_time(stop={"cycles": 3}, eval={"every": 1, "seconds": 5.0})
        for number in (1, 2, 3):
            stage.answer(number)
        assert stage.scored(2).effects == []
        assert len(stage.scored(1).records(AggEval)) == 2
        assert stage.scored(3).stop is not None

    def test_a_loss_while_closing_is_said_and_changes_nothing(self) -> None:
        stage = one_at_a_time(stop={"cycles": 1}, eval={"every": 1})
        stage.answer(1)
        heard = stage.step(PeerDown("t0", "gone"))
        assert [intrusion.voided for intrusion in heard.records(Intrusion)] == [[]]
        assert stage.scored(1).stop is not None

    def test_an_answer_to_no_question_is_dropped(self) -> None:
        assert [fault.detail for fault in one_at_a_time().scored(7).records(Fault)] == [
            "evaluation 7: nothing waits for it, or it came before"
        ]


class TestConverged:
    """The last `window` evaluations are at or over the target."""

    def run(self, *accuracies: float, window: int = 2) -> list[Heard]:
        stage = one_at_a_time(stop={"cycles": 9, "target": {"accuracy": 0.8, "window": window}}, eval={"every": 1})
        heard = []
        for number, accuracy in enumerate(accuracies, start=1):
            stage.answer(number)
            heard.append(stage.scored(number, accuracy))
        return heard

    def test_it_takes_the_whole_window(self) -> None:
        first, second = self.run(0.8, 0.9)
        assert first.stop is None
        assert second.stop == Stop("CONVERGED", "2 evaluations in a row at or over 0.8")

    def test_one_below_starts_the_window_anew(self) -> None:
        heard = self.run(0.8, 0.79, 0.8, 0.8)
        assert [step.stop is None for step in heard] == [True, True, True, False]

    def test_a_window_of_one(self) -> None:
        assert self.run(0.8, window=1)[0].stop is not None

    def test_without_a_target_nothing_converges(self) -> None:
        stage = one_at_a_time(eval={"every": 1})
        stage.answer(1)
        assert stage.scored(1, 1.0).stop is None

    def test_the_last_evaluation_may_turn_the_verdict(self) -> None:
        stage = one_at_a_time(stop={"cycles": 1, "target": {"accuracy": 0.8, "window": 1}}, eval={"every": 1})
        stage.answer(1)
        heard = stage.scored(1, 0.8)
        assert heard.stop is not None
        assert heard.stop.verdict == "CONVERGED"
        assert len(heard.of(Stop)) == len(heard.records(RunEnd)) == 1

    def test_a_stop_rule_does_not_overwrite_it(self) -> None:
        """Converged with another evaluation out: nothing later counts."""
        stage = one_at_a_time(stop={"cycles": 9, "target": {"accuracy": 0.8, "window": 1}}, eval={"every": 1, "seconds": 1.5})
        stage.answer(1)
        stage.answer(2)
        heard = stage.scored(1, 0.9, at=2.5)
        assert heard.stop is None
        assert stage.machine.phase == "closing"
        assert stage.scored(2, 0.1).stop == Stop("CONVERGED", "1 evaluations in a row at or over 0.8")


class TestStalled:
    """No evaluation was better by what counts as progress for a window of stamp time."""

    def run(self, *scores: tuple[float, float], **stall: Any) -> list[Heard]:
        """One evaluation a second, of (accuracy, loss)."""
        stage = one_at_a_time(stop={"cycles": 99, "stall": {"window_s": 2} | stall}, eval={"every": 1})
        heard = []
        for number, (accuracy, loss) in enumerate(scores, start=1):
            stage.answer(number)
            heard.append(stage.scored(number, accuracy, loss=loss))
        return heard

    def stops(self, *scores: tuple[float, float], **stall: Any) -> int | None:
        """After how many evaluations it stops."""
        verdicts = [step.stop and step.stop.verdict for step in self.run(*scores, **stall)]
        assert set(verdicts) <= {None, "STALLED"}
        return verdicts.index("STALLED") + 1 if "STALLED" in verdicts else None

    def test_two_seconds_after_the_last_progress(self) -> None:
        heard = self.run((0.5, 1.0), (0.5, 1.0), (0.5, 1.0))
        assert [step.stop for step in heard] == [
            None, None, Stop("STALLED", "neither accuracy nor loss has improved for 2.0 s of stamp time")
        ]  # fmt: skip

    def test_one_hundredth_of_accuracy_or_of_loss_is_progress(self) -> None:
        flat = (0.5, 1.0)
        assert self.stops(flat, flat, (0.51, 1.0), flat, flat) == 5
        assert self.stops(flat, flat, (0.5, 0.99), flat, flat) == 5
        assert self.stops(flat, flat, (0.509, 0.991)) == 3

    def test_only_what_is_looked_at_counts(self) -> None:
        better = [(0.5 + 0.1 * second, 1.0) for second in range(4)]
        assert (self.stops(*better, on="acc"), self.stops(*better, on="loss")) == (None, 3)
        lower = [(0.5, 1.0 - 0.1 * second) for second in range(4)]
        assert (self.stops(*lower, on="acc"), self.stops(*lower, on="loss")) == (3, None)

    def test_a_creep_adds_up(self) -> None:
        """Half of the least progress each second: against the best that counted, every other one is progress."""
        assert self.stops(*((0.5 + 0.0051 * second, 1.0) for second in range(12))) is None

    def test_the_best_is_kept_through_a_dip(self) -> None:
        assert self.stops((0.8, 1.0), (0.2, 2.0), (0.7, 1.5)) == 3

    def test_convergence_is_judged_first(self) -> None:
        rules = {"cycles": 99, "target": {"accuracy": 0.5, "window": 3}, "stall": {"window_s": 2}}
        stage = one_at_a_time(stop=rules, eval={"every": 1})
        for number in (1, 2, 3):
            stage.answer(number)
            heard = stage.scored(number, 0.5)
        assert heard.stop is not None
        assert heard.stop.verdict == "CONVERGED"

    def test_what_comes_in_while_it_ends_does_not_stall_it(self) -> None:
        stage = one_at_a_time(stop={"cycles": 3, "stall": {"window_s": 2}}, eval={"every": 1, "seconds": 2.5})
        for number in (1, 2, 3):
            stage.answer(number)
        stops = [stage.scored(number, 0.5, at=number + 2.5).stop for number in (1, 2, 3)]
        assert stops == [None, None, Stop("COMPLETED", "3 cycles")]

    def test_a_target_brings_a_guard_unless_told_not_to(self) -> None:
        guarded = {"cycles": 5, "target": {"accuracy": 0.5}}
        assert StopRules.model_validate(guarded).stall == Stall(window_s=7200)
        assert StopRules.model_validate(guarded | {"stall": None}).stall is None
        assert StopRules.model_validate({"cycles": 5}).stall is None


def test_a_bound_before_the_target_is_no_success() -> None:
    stage = one_at_a_time(stop={"cycles": 1, "target": {"accuracy": 0.8, "window": 1}}, eval={"every": 1})
    stage.answer(1)
    stop = stage.scored(1, 0.7).stop
    assert stop == Stop("DID_NOT_CONVERGE", "1 cycles, and no 1 evaluations in a row at or over 0.8")


class TestProgressRecords:
    """`at` is where the run stood before the decision that a record reports."""

    def test_a_close_reports_what_was(self) -> None:
        stage = one_at_a_time(surrogate={"parameters": 2, "bins": 2}, commit=[{"type": "cap", "max": 2}])
        closes = [stage.answer(number, 2.0, 0.0).records(AggRound)[0] for number in (1, 2, 3)]
        seen = [(close.at.data_id, close.at.iteration, close.at.model_version, close.at.cycle) for close in closes]
        assert seen == [(0, 0, 0, 0), (0, 1, 0, 1), (1, 0, 1, 2)]
        assert [(close.committed, close.reason, close.grad_norm, close.pool) for close in closes] == [
            (False, "keep", None, 1), (True, "cap", 2.0, 2), (False, "keep", None, 1),
        ]  # fmt: skip
        assert [close.stamp_ns for close in closes] == [SECOND, 2 * SECOND, 3 * SECOND]
        assert closes[1].model == stage.machine.theta.digest
        assert closes[1].threshold is None

    def test_the_threshold_of_the_gate_is_on_record(self) -> None:
        stage = one_at_a_time(commit=[{"type": "variance", "threshold": 0.25}, {"type": "cap", "max": 2}])
        assert stage.answer(1).records(AggRound)[0].threshold == 0.25
