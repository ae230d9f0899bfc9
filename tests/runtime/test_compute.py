"""Executors: pure tasks, tried twice; in the caller, in processes, or beside a loop, earliest due first."""

import os
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from threading import Event
from time import monotonic_ns, perf_counter

import pytest

from flame.config.condition import Condition
from flame.core.tasks import EvalResult, Evaluate, Gradient, GradientResult, Result, Task
from flame.learn.learner import Facts, build
from flame.runtime.compute.executors import Beside, Computed, Inline, Pool, attempt
from tests.stage import condition, numbers

PATIENCE = 20.0
"""Seconds after which a thread counts as lost; nothing here takes any."""
THETA = numbers(0.0, 0.0)


def gradient(number: int) -> Gradient:
    return Gradient("t0", 0, 0, number, THETA)


class Script:
    """A learner that notes what it ran. fails: how often each task fails before it works."""

    def __init__(self, fails: int = 0) -> None:
        self.fails, self.ran = fails, list[int]()

    @property
    def facts(self) -> Facts:
        raise NotImplementedError

    @property
    def notes(self) -> tuple[str, ...]:
        return ()

    def warm(self) -> None:
        """Nothing."""

    def moved(self) -> dict[str, float]:
        return {"to_host": 0.0}

    def counts(self) -> dict[str, int]:
        return {"hits": 3}

    def run(self, task: Task) -> Result:
        if isinstance(task, Evaluate):
            return EvalResult(0.0, 1.0, 1, [1.0], 1.0)
        self.ran.append(task.seed)
        if self.fails:
            self.fails -= 1
            raise ArithmeticError(f"no tangent at {task.seed}")
        return GradientResult(THETA, float(task.seed), 0.0, 1, 1, 1)


class Broken:
    """A learner whose every task fails, for a pool: made where it is used."""

    def __init__(self, of: Condition) -> None:
        self.inner = build(of)

    def run(self, task: Task) -> Result:
        raise MemoryError("full")

    def counts(self) -> dict[str, int]:
        return {}


class Environment:
    """A learner that fails with what it read when it was made."""

    def __init__(self) -> None:
        self.value = os.environ["FLAME_TEST"]

    def run(self, task: Task) -> Result:
        raise KeyError(self.value)

    def counts(self) -> dict[str, int]:
        return {"made": 1} | ({"path": 1} if "PATH" in os.environ else {})


class TestAttempt:
    """Once more, and no oftener."""

    def test_what_works_is_run_once(self) -> None:
        learner, started = Script(), perf_counter()
        finished = attempt(learner, gradient(5))
        assert (finished.error, learner.ran) == (None, [5])
        assert isinstance(finished.result, GradientResult)
        assert finished.result.loss == 5.0
        assert 0 <= finished.seconds <= perf_counter() - started

    def test_what_fails_once_is_tried_again(self) -> None:
        learner = Script(fails=1)
        finished = attempt(learner, gradient(5))
        assert finished.error is None
        assert finished.result is not None
        assert learner.ran == [5, 5]

    def test_what_fails_twice_is_reported_with_its_type(self) -> None:
        learner = Script(fails=2)
        finished = attempt(learner, gradient(5))
        assert (finished.result, finished.error) == (None, "ArithmeticError: no tangent at 5")
        assert learner.ran == [5, 5]
        assert finished.seconds >= 0

    def test_an_interrupt_is_no_failure_of_a_task(self) -> None:
        class Interrupted(Script):
            def run(self, task: Task) -> Result:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            attempt(Interrupted(), gradient(5))


def test_inline_runs_a_task_when_its_result_is_asked_for() -> None:
    learner = Script()
    executor = Inline(learner)
    first, second = executor.submit(gradient(1)), executor.submit(gradient(2))
    assert learner.ran == []
    second.wait()
    first.wait()
    assert learner.ran == [2, 1]
    assert executor.counts() == {"tasks": 2, "hits": 3}
    executor.close()


class TestPool:
    """Processes of its own, each with its own learner."""

    def test_it_gives_the_bits_of_inline(self) -> None:
        of = condition(trainers=2, goal=1)
        tasks: list[Task] = [*(Gradient(node, 0, 0, seed, THETA) for node in ("t0", "t1") for seed in range(3)), Evaluate(0, THETA)]
        pool, inline = Pool(partial(build, of), 2), Inline(build(of))
        try:
            claims = [(pool.submit(task), inline.submit(task)) for task in tasks]
            for ours, theirs in reversed(claims):
                assert ours.wait().result == theirs.wait().result
            assert pool.counts()["tasks"] == len(tasks)
        finally:
            pool.close()

    @pytest.mark.parametrize("value", ["one", "two"])
    def test_its_processes_see_the_environment_of_today(self, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """And not that of the first pool of this process, whose fork server lives on."""
        monkeypatch.setenv("FLAME_TEST", value)
        pool = Pool(Environment, 1)  # type: ignore[arg-type]
        try:
            assert pool.submit(gradient(1)).wait().error == f"KeyError: '{value}'"
            assert pool.counts() == {"tasks": 1, "made": 1, "path": 1}
        finally:
            pool.close()

    def test_what_is_no_longer_set_is_not_seen(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """`PATH` was there when the fork server started."""
        monkeypatch.setenv("FLAME_TEST", "x")
        for made in ({"made": 2, "path": 2}, {"made": 2}):
            pool = Pool(Environment, 2)  # type: ignore[arg-type]
            try:
                assert pool.counts() == {"tasks": 0} | made
            finally:
                pool.close()
            monkeypatch.delenv("PATH", raising=False)

    def test_closed_it_takes_nothing_more(self) -> None:
        pool = Pool(partial(Broken, condition()), 1)  # type: ignore[arg-type]
        pool.close()
        with pytest.raises(RuntimeError, match="after shutdown"):
            pool.submit(gradient(1))

    def test_a_failure_comes_back_as_an_answer(self) -> None:
        pool = Pool(partial(Broken, condition()), 1)  # type: ignore[arg-type]
        try:
            finished = pool.submit(gradient(1)).wait()
        finally:
            pool.close()
        assert (finished.result, finished.error) == (None, "MemoryError: full")


class Held(Script):
    """A learner that stays in task 0 until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.entered, self.go = Event(), Event()

    def run(self, task: Task) -> Result:
        result = super().run(task)
        if isinstance(task, Gradient) and task.seed == 0:
            self.entered.set()
            assert self.go.wait(PATIENCE)
        return result


@pytest.fixture
def beside() -> Callable[[Script], tuple[Beside, "SimpleQueue[Computed]"]]:
    """Makes an executor beside this thread, and the queue of its ends."""

    def make(learner: Script) -> tuple[Beside, "SimpleQueue[Computed]"]:
        ended: SimpleQueue[Computed] = SimpleQueue()
        return Beside(learner, ended.put), ended

    return make


Make = Callable[[Script], tuple[Beside, "SimpleQueue[Computed]"]]


class TestBeside:
    """One thread; the earliest due goes first."""

    def test_the_earliest_due_goes_first_and_equals_as_they_came(self, beside: Make) -> None:
        learner = Held()
        executor, ended = beside(learner)
        executor.submit(("t0", 0), gradient(0), due=99)
        assert learner.entered.wait(PATIENCE)
        for job, due in ((1, 30), (2, 10), (3, 20), (4, 10), (5, 5)):
            executor.submit(("t0", job), gradient(job), due)
        learner.go.set()
        assert [ended.get(timeout=PATIENCE).job[1] for _ in range(6)] == [0, 5, 2, 4, 3, 1]
        assert learner.ran == [0, 5, 2, 4, 3, 1]
        executor.close()

    def test_an_end_says_when_it_ran_and_what_came_of_it(self, beside: Make) -> None:
        executor, ended = beside(Script())
        executor.submit(("t0", 7), gradient(3), due=0)
        done = ended.get(timeout=PATIENCE)
        assert done.job == ("t0", 7)
        assert isinstance(done.finished.result, GradientResult)
        assert done.finished.result.loss == 3.0
        assert done.started_at <= done.ended_at
        executor.close()

    def test_a_failure_does_not_end_the_thread(self, beside: Make) -> None:
        executor, ended = beside(Script(fails=2))
        executor.submit(("t0", 1), gradient(1), due=0)
        assert ended.get(timeout=PATIENCE).finished.error == "ArithmeticError: no tangent at 1"
        executor.submit(("t0", 2), gradient(2), due=0)
        assert ended.get(timeout=PATIENCE).finished.error is None
        executor.close()

    def test_it_says_how_long_the_running_task_takes(self, beside: Make) -> None:
        learner, started = Held(), monotonic_ns()
        executor, ended = beside(learner)
        assert executor.computing() == 0
        executor.submit(("t0", 0), gradient(0), due=0)
        assert learner.entered.wait(PATIENCE)
        first = executor.computing()
        assert 0 < first <= executor.computing() <= monotonic_ns() - started
        learner.go.set()
        ended.get(timeout=PATIENCE)
        assert executor.computing() == 0
        executor.close()

    def test_closed_while_it_waits_it_ends(self, beside: Make) -> None:
        executor, ended = beside(Script())
        executor.submit(("t0", 1), gradient(1), due=0)
        ended.get(timeout=PATIENCE)
        executor.close()
        executor._thread.join(PATIENCE)
        assert not executor._thread.is_alive()

    def test_closed_it_starts_nothing_more_and_waits_for_nothing(self, beside: Make) -> None:
        learner = Held()
        executor, ended = beside(learner)
        executor.submit(("t0", 0), gradient(0), due=0)
        assert learner.entered.wait(PATIENCE)
        executor.submit(("t0", 1), gradient(1), due=0)
        executor.close()  # returns while task 0 runs
        learner.go.set()
        assert ended.get(timeout=PATIENCE).job == ("t0", 0)
        executor._thread.join(PATIENCE)
        assert not executor._thread.is_alive()
        assert learner.ran == [0]
        assert ended.empty()
