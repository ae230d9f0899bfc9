"""The simulated world: its clock, its order, its ends, and that watching it changes nothing."""

from collections.abc import Sequence
from random import Random
from time import perf_counter
from typing import Any

import pytest

from flame.config import Condition
from flame.config.devices import profiles
from flame.core.effects import CancelTimer, Compute, Effect, Emit, Send, SetTimer, Stop
from flame.core.events import ComputeDone, Event, PeerUp, Received, Started, StopAsked, TimerFired, TimerKey
from flame.core.machine import IllegalEvent
from flame.core.messages import AGGREGATOR, End
from flame.core.tasks import EvalResult, Evaluate, Gradient, GradientResult, Task
from flame.learn.learner import build
from flame.roles.aggregator import Aggregator
from flame.roles.trainer import Trainer
from flame.runtime.books.journal import Blank
from flame.runtime.compute.executors import Finished, Inline, Ticket
from flame.runtime.sim import Outcome, Simulation
from flame.runtime.transport.codec import size
from flame.telemetry.records import AggEval, AggRound, Comm, Level, RunEnd, TrainerRound
from flame.telemetry.writer import Silence
from tests.stage import condition, numbers


class Ledger:
    """A sink that keeps what it is given."""

    def __init__(self, level: Level = "full") -> None:
        self.level, self.lines = level, list[tuple[str, int, int | None, Any]]()

    def takes(self, level: Level) -> bool:
        return self.level in ("full", level)

    def write(self, node: str, t_ns: int, stamp_ns: int | None, record: Any) -> None:
        self.lines.append((node, t_ns, stamp_ns, record))

    def close(self) -> None:
        """Nothing."""

    def of(self, kind: type) -> list[Any]:
        return [record for _, _, _, record in self.lines if isinstance(record, kind)]


class Steps(Blank):
    """A journal in memory."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[tuple[str, int, Event, list[TimerKey], list[Effect]]] = []

    def append(self, node: str, now: int, event: Event, released: Sequence[TimerKey], effects: Sequence[Effect] | None) -> None:
        super().append(node, now, event, released, effects)
        self.steps.append((node, now, event, list(released), list(effects or [])))


class Answering(Inline):
    """An executor whose answers to some tasks are given. seconds: what it says it measured."""

    def __init__(self, of: Condition, **answers: Finished) -> None:
        super().__init__(build(of))
        self.answers = answers

    def submit(self, task: Task) -> Ticket:
        return _Given(self.answers[task.kind]) if task.kind in self.answers else super().submit(task)


class _Given:
    def __init__(self, finished: Finished) -> None:
        self.finished = finished

    def wait(self) -> Finished:
        return self.finished


def simulated(of: Condition, executor: Inline | None = None, **how: Any) -> tuple[Outcome, Steps, Ledger]:
    """A run of `of`: how it ended, its journal, its telemetry."""
    facts, steps, ledger = build(of).facts, Steps(), how.pop("sink", None) or Ledger()
    trainers = {node: Trainer(of, profile) for node, profile in profiles(of).items()}
    world = Simulation(Aggregator(of, facts.init, facts.bins), trainers, executor or Inline(build(of)), steps, ledger, **how)
    return world.run(), steps, ledger


SMALL = condition(stop={"cycles": 6}, eval={"every": 2, "seconds": 0.25}, server_opt={"type": "sgd", "lr": 0.1})


def test_a_run_ends_with_its_verdict_at_the_virtual_instant() -> None:
    started = perf_counter()
    outcome, steps, ledger = simulated(SMALL)
    assert (outcome.verdict, outcome.reason) == ("COMPLETED", "6 cycles")
    assert 0 < outcome.joined_s + outcome.wall_s < perf_counter() - started
    assert all(0 <= close.wall_s <= outcome.wall_s for close in ledger.of(AggRound))
    assert outcome.now == steps.steps[-1][1]
    assert outcome.steps == len(steps.steps) == steps.seq


def test_everybody_is_announced_before_ready() -> None:
    _, steps, _ = simulated(SMALL)
    heads = [(node, now, type(event)) for node, now, event, _, _ in steps.steps[:4]]
    assert heads == [(AGGREGATOR, 0, PeerUp)] * 3 + [(AGGREGATOR, 0, Started)]


def test_the_clock_never_goes_back_and_jumps_to_what_is_due() -> None:
    """An update is computed at its assign's due, and arrives at that very instant."""
    _, steps, _ = simulated(SMALL)
    instants = [now for _, now, _, _, _ in steps.steps]
    assert instants == sorted(instants)
    updates = [(now, event.msg.stamp) for node, now, event, _, _ in steps.steps if node == AGGREGATOR and isinstance(event, Received)]  # type: ignore[union-attr]
    assert len(updates) > 6
    assert all(now == stamp for now, stamp in updates)


def test_in_arrival_order_a_stamp_is_the_instant_of_the_arrival() -> None:
    """Nothing is late in a simulation, so with delays that don't tie both orders release the same."""
    plain = {"delays": {"values": [1.0, 1.3, 0.7]}, "stop": {"cycles": 9}}
    _, arrival, _ = simulated(condition(commit_order="arrival", pacing="relative", **plain))
    _, stamped, _ = simulated(condition(**plain))
    released = [(key, now) for _, now, _, keys, _ in arrival.steps for key in keys]
    assert all(key[0] == now for key, now in released)
    assert [key for key, _ in released] == [key for *_, keys, _ in stamped.steps for key in keys]
    assert len(released) > 15


def test_work_that_is_due_beyond_the_stop_is_never_asked_for() -> None:
    executor = Inline(build(SMALL))
    waited: list[Task] = []
    run = executor._learner.run
    executor._learner.run = lambda task: (waited.append(task), run(task))[1]  # type: ignore[method-assign,func-returns-value]
    simulated(SMALL, executor)
    assert executor.counts()["tasks"] > len(waited) > 10


class TestCrash:
    """What fails twice ends the run, and the end is on record."""

    def test_a_trainers_job(self) -> None:
        outcome, _, ledger = simulated(SMALL, Answering(SMALL, gradient=Finished(None, "MemoryError: full", 0.0)))
        assert (outcome.verdict, outcome.reason) == ("CRASH", "`t0`: job 1 failed twice: MemoryError: full")
        (end,) = ledger.of(RunEnd)
        assert (end.verdict, end.reason) == (outcome.verdict, outcome.reason)

    def test_an_evaluation(self) -> None:
        outcome, _, ledger = simulated(SMALL, Answering(SMALL, evaluate=Finished(None, "MemoryError: full", 0.0)))
        assert (outcome.verdict, outcome.reason) == ("CRASH", "aggregator: evaluation of version 2 failed twice: MemoryError: full")
        assert [end.verdict for end in ledger.of(RunEnd)] == ["CRASH"]

    def test_an_answer_without_result_and_error_is_a_failure_too(self) -> None:
        outcome, _, _ = simulated(SMALL, Answering(SMALL, gradient=Finished(None, None, 0.0)))
        assert outcome.reason.endswith("no result")

    def test_an_illegal_event_is_located(self) -> None:
        """A delta of the wrong length: raised with the machine, the step and the virtual time."""
        wrong = GradientResult(numbers(1, 2, 3), 1.0, 1.0, 8, 1, 1)
        with pytest.raises(
            IllegalEvent, match=r"^aggregator \(running.*update 1 of `t0`.*\n  step 8 at 00:00:01\.000 virtual\nhint: .*--until 8"
        ):
            simulated(SMALL, Answering(SMALL, gradient=Finished(wrong, None, 0.0)))


class TestWatching:
    """Telemetry, levels and watchers see; they don't touch."""

    def stripped(self, steps: Steps) -> list[Any]:
        """Steps without records."""
        return [(*step[:4], [effect for effect in step[4] if not isinstance(effect, Emit)]) for step in steps.steps]

    @pytest.mark.parametrize("sink", [Silence(), Ledger("commits"), Ledger("summary")])
    def test_emission_switched_off_changes_no_bit(self, sink: Any) -> None:
        assert simulated(SMALL, sink=sink)[1].steps == simulated(SMALL)[1].steps

    def test_a_record_below_the_level_is_not_written(self) -> None:
        ledger = simulated(SMALL, sink=Ledger("summary"))[2]
        assert {record.level for _, _, _, record in ledger.lines} == {"summary"}

    def test_the_driver_fills_what_it_measures(self) -> None:
        seconds = 0.125
        result = GradientResult(numbers(0.5, 0.5), 1.0, 1.0, 8, 1, 1)
        _, steps, ledger = simulated(SMALL, Answering(SMALL, gradient=Finished(result, None, seconds)))
        closes = {record.vclock_ns for record in ledger.of(AggRound)}
        assert closes <= {now for _, now, _, _, _ in steps.steps}
        assert all(record.wall_s >= 0 for record in ledger.of(AggRound))
        assert all(record.phases == {"compute": seconds} for record in ledger.of(TrainerRound))

    def test_a_line_has_the_instant_and_the_aggregators_frontier(self) -> None:
        for node, t_ns, stamp_ns, record in simulated(SMALL)[2].lines:
            assert (stamp_ns is None) == (node != AGGREGATOR or (isinstance(record, Comm) and record.direction == "up"))
            assert stamp_ns is None or stamp_ns <= t_ns

    def test_bytes_are_counted_by_the_codec_for_each_message(self) -> None:
        _, steps, ledger = simulated(SMALL)
        messages = [effect.msg for *_, effects in steps.steps for effect in effects if isinstance(effect, Send)]
        assert [record.message_bytes for record in ledger.of(Comm)] == [size(msg) for msg in messages]
        assert {(record.direction, record.payload) for record in ledger.of(Comm)} == {("down", "full"), ("up", "dense")}

    def test_nobody_counts_bytes_that_nobody_keeps(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("flame.runtime.sim.comm_record", lambda *_: pytest.fail("bytes were counted"))
        simulated(SMALL, sink=Ledger("summary"))

    def test_a_watcher_sees_closes_and_evaluations_in_time(self) -> None:
        watcher = Watcher()
        _, _, ledger = simulated(SMALL, watcher=watcher)
        assert [type(record) for _, record in watcher.seen] == [type(r) for _, _, _, r in ledger.lines if isinstance(r, AggRound | AggEval)]
        assert [now for now, _ in watcher.seen] == sorted(now for now, _ in watcher.seen)

    def test_a_watcher_may_stop_the_run(self) -> None:
        watcher = Watcher(after=9)
        outcome, steps, ledger = simulated(SMALL, watcher=watcher)
        assert (outcome.verdict, outcome.reason) == ("WALL_CEILING", "enough")
        assert isinstance(steps.steps[-1][2], StopAsked)
        assert [end.verdict for end in ledger.of(RunEnd)] == ["WALL_CEILING"]

    def test_a_watcher_comes_too_late_for_a_run_that_has_ended(self) -> None:
        count = len(simulated(SMALL)[1].steps)
        outcome, _, _ = simulated(SMALL, watcher=Watcher(after=count - 4))
        assert outcome.verdict == "COMPLETED"


class Watcher:
    """Notes what it is told, and asks for a stop after so many questions."""

    def __init__(self, after: int | None = None) -> None:
        self.after, self.asked, self.seen = after, 0, list[tuple[int, Any]]()

    def saw(self, now: int, record: AggRound | AggEval) -> None:
        self.seen.append((now, record))

    def stop_asked(self) -> StopAsked | None:
        self.asked += 1
        return StopAsked("enough", "WALL_CEILING") if self.asked == self.after else None


@pytest.mark.parametrize("wire_roundtrip", [None, False, True])
def test_messages_go_by_reference_unless_they_go_through_the_codec(wire_roundtrip: bool | None) -> None:
    how: dict[str, Any] = {} if wire_roundtrip is None else {"wire_roundtrip": wire_roundtrip}
    _, steps, _ = simulated(SMALL, **how)
    sent = [effect.msg for *_, effects in steps.steps for effect in effects if isinstance(effect, Send)]
    received = [event.msg for _, _, event, _, _ in steps.steps if isinstance(event, Received)]
    assert len(received) > 20
    assert {any(msg is other for other in sent) for msg in received} == {not wire_roundtrip}


@pytest.mark.parametrize("ties", [None, 1, 2])
def test_the_way_through_the_codec_changes_no_step(ties: int | None) -> None:
    def run(wire_roundtrip: bool) -> list[Any]:
        return simulated(SMALL, wire_roundtrip=wire_roundtrip, ties=None if ties is None else Random(ties))[1].steps

    assert run(True) == run(False)


class Puppet:
    """An aggregator that says what it is told to, by event and instant."""

    released: Sequence[TimerKey] = ()

    def __init__(self, script: dict[Any, list[Effect]]) -> None:
        self.script, self.heard = script, list[tuple[int, Any]]()

    def step(self, now: int, event: Event) -> list[Effect]:
        what = event.key[3] if isinstance(event, TimerFired) else event.job if isinstance(event, ComputeDone) else type(event).__name__
        self.heard.append((now, what))
        return self.script.get(what, [])

    def describe(self) -> str:
        return "puppet"


def played(script: dict[Any, list[Effect]], **how: Any) -> list[tuple[int, Any]]:
    """What a puppet heard."""
    puppet = Puppet(script)
    Simulation(puppet, {}, Inline(build(SMALL)), Blank(), Silence(), **how).run()  # type: ignore[arg-type]
    return puppet.heard


def timer(number: int, at: int) -> SetTimer:
    return SetTimer((at, 4, "", number), at)


class TestOrder:
    """One instant: first come, first served, unless ties are shuffled. The clock advances before a step."""

    def test_entries_come_by_their_instant(self) -> None:
        heard = played({"Started": [timer(1, 30), timer(2, 10), timer(3, 20)], 1: [Stop("COMPLETED", "")]})
        assert heard == [(0, "Started"), (10, 2), (20, 3), (30, 1)]

    def test_of_one_instant_as_they_were_pushed(self) -> None:
        script: dict[Any, list[Effect]] = {
            "Started": [timer(1, 10), timer(2, 10), timer(3, 0), timer(4, 0)],
            1: [timer(5, 10), timer(6, 3)],  # what is due now, or was due before, waits behind what was there
            6: [Stop("COMPLETED", "")],
        }
        assert played(script) == [(0, "Started"), (0, 3), (0, 4), (10, 1), (10, 2), (10, 5), (10, 6)]

    def test_shuffled_ties_keep_the_instants(self) -> None:
        script: dict[Any, list[Effect]] = {"Started": [*(timer(n, 10) for n in range(8)), timer(9, 11)], 9: [Stop("COMPLETED", "")]}
        orders = {tuple(what for _, what in played(script, ties=Random(seed))) for seed in range(6)}
        assert len(orders) > 1
        assert {tuple(sorted(order[1:-1])) for order in orders} == {tuple(range(8))}
        assert {order[-1] for order in orders} == {9}

    def test_a_cancelled_timer_does_not_fire_and_may_be_set_again(self) -> None:
        script: dict[Any, list[Effect]] = {
            "Started": [timer(1, 10), timer(2, 20), CancelTimer((20, 4, "", 2)), timer(3, 30)],
            3: [SetTimer((20, 4, "", 2), 40)],
            2: [Stop("COMPLETED", "")],
        }
        assert played(script) == [(0, "Started"), (10, 1), (30, 3), (40, 2)]

    def test_a_result_comes_at_its_not_before_and_not_before_now(self) -> None:
        task = Evaluate(0, numbers(0, 0))
        script: dict[Any, list[Effect]] = {
            "Started": [timer(1, 10)],
            1: [Compute(7, task, 25), Compute(8, task, 5)],
            7: [Stop("COMPLETED", "")],
        }
        assert played(script) == [(0, "Started"), (10, 1), (10, 8), (25, 7)]

    def test_the_first_stop_counts(self) -> None:
        puppet = Puppet({"Started": [Stop("COMPLETED", "one"), Stop("CRASH", "two")]})
        outcome = Simulation(puppet, {}, Inline(build(SMALL)), Blank(), Silence()).run()  # type: ignore[arg-type]
        assert (outcome.verdict, outcome.reason) == ("COMPLETED", "one")

    def test_a_run_that_nobody_stops_is_a_fault_of_the_machine(self) -> None:
        with pytest.raises(RuntimeError, match="the heap ran empty before a stop: puppet"):
            played({"Started": [timer(1, 10)]})


def test_a_trainer_that_is_told_the_end_does_not_end_the_run() -> None:
    """Its Stop is its own; a crash would be everybody's."""
    trainer = Trainer(SMALL, profiles(SMALL)["t0"])
    puppet = Puppet({"Started": [Send("t0", End("over")), timer(1, 10)], 1: [Stop("COMPLETED", "mine")]})
    outcome = Simulation(puppet, {"t0": trainer}, Inline(build(SMALL)), Blank(), Ledger()).run()  # type: ignore[arg-type]
    assert outcome.reason == "mine"
    assert [what for _, what in puppet.heard] == ["PeerUp", "Started", 1]


def test_results_are_what_the_executor_gave() -> None:
    scored = EvalResult(0.5, 0.875, 4, [1.0, None], 0.0)
    ledger = simulated(SMALL, Answering(SMALL, evaluate=Finished(scored, None, 0.0)))[2]
    assert {record.accuracy for record in ledger.of(AggEval)} == {0.875}


def test_a_gradient_is_asked_for_once_per_assign() -> None:
    _, steps, _ = simulated(SMALL)
    jobs = [
        (node, effect.job)
        for node, *_, effects in steps.steps
        for effect in effects
        if isinstance(effect, Compute) and isinstance(effect.task, Gradient)
    ]
    assert len(jobs) == len(set(jobs)) > 10
