"""Executors: who runs the tasks of Compute effects, and where.

Tasks are pure, so neither the order of running nor the process can change a bit: each worker runs
torch with one thread, in both worlds. A failure is tried once more; the second one is an answer too.

  Inline  runs a task when its result is asked for, in the caller's thread (debugging, surrogate)
  Pool    runs tasks ahead of the virtual clock in processes of its own
  Beside  runs tasks one after another beside a main loop, earliest due first (real)
"""

import os
import signal
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, field
from heapq import heappop, heappush
from multiprocessing import get_context
from multiprocessing.context import ForkServerContext
from threading import Condition, Thread
from time import monotonic_ns, perf_counter, sleep
from typing import Protocol

from flame.core.tasks import Result, Task
from flame.learn.learner import Learner


@dataclass(slots=True)
class Finished:
    """A task's end: its result, or the error of the second failure. seconds: measured; moved: how many of them moved values."""

    result: Result | None
    error: str | None
    seconds: float
    moved: dict[str, float] = field(default_factory=dict)

    @property
    def phases(self) -> dict[str, float]:
        """Seconds of computing, and, where the learner moves values, of moving them there and back."""
        return {"compute": self.seconds - sum(self.moved.values()), **self.moved}


class Ticket(Protocol):
    """A claim on a result."""

    def wait(self) -> Finished:
        """Block until the task is finished."""
        ...


class Executor(Protocol):
    """Takes tasks, gives tickets."""

    def submit(self, task: Task) -> Ticket:
        """Take a task. It runs now, later, or when its ticket is waited for."""
        ...

    def counts(self) -> dict[str, int]:
        """Tasks run, and hits of the learner's optimisations."""
        ...

    def close(self) -> None:
        """Give the workers back."""
        ...


def attempt(learner: Learner, task: Task) -> Finished:
    """Run `task`, once more if it fails."""
    started = perf_counter()
    for attempts_left in (1, 0):
        try:
            result = learner.run(task)
        except Exception as error:  # a task may fail in any way; the second failure is reported with its type
            if not attempts_left:
                return Finished(None, f"{type(error).__name__}: {error}", perf_counter() - started)
        else:
            return Finished(result, None, perf_counter() - started, learner.moved())
    raise AssertionError("unreachable")


class _Lazy:
    __slots__ = ("_learner", "_task")

    def __init__(self, learner: Learner, task: Task) -> None:
        self._learner, self._task = learner, task

    def wait(self) -> Finished:
        return attempt(self._learner, self._task)


class Inline:
    """Runs each task when its result is read."""

    def __init__(self, learner: Learner) -> None:
        self._learner = learner
        self._tasks = 0

    def submit(self, task: Task) -> Ticket:
        """A claim that computes when it is redeemed."""
        self._tasks += 1
        return _Lazy(self._learner, task)

    def counts(self) -> dict[str, int]:
        """Tasks, and the learner's hits."""
        return {"tasks": self._tasks, **self._learner.counts()}

    def close(self) -> None:
        """Nothing to give back."""


def fork_server() -> ForkServerContext:
    """The one fork server of this process. It loads once what its children share; who starts it first decides for all."""
    context = get_context("forkserver")
    context.set_forkserver_preload(["torch", "numpy", "flame.launch.processes.mains", "flame.learn.toy"])
    return context


class _Claim:
    __slots__ = ("_future",)

    def __init__(self, future: "Future[Finished]") -> None:
        self._future = future

    def wait(self) -> Finished:
        return self._future.result()


class Pool:
    """Runs tasks in `size` processes, started from a fork server, each with its own learner."""

    def __init__(self, make: Callable[[], Learner], size: int) -> None:
        context = fork_server()
        self._tasks = 0
        self._processes = ProcessPoolExecutor(size, context, initializer=_settle, initargs=(make, dict(os.environ)))
        self._size = size
        self._ask_everybody()

    def _ask_everybody(self) -> dict[int, dict[str, int]]:
        """Each process's learner's hits, by pid. Waits until all have one: building them belongs to nobody's computing time."""
        answers: dict[int, dict[str, int]] = {}
        while len(answers) < self._size:
            answers |= dict(self._processes.map(_counted_here, range(2 * self._size)))
        return answers

    def submit(self, task: Task) -> Ticket:
        """Hand the task to a free process."""
        self._tasks += 1
        return _Claim(self._processes.submit(_work, task))

    def counts(self) -> dict[str, int]:
        """Tasks handed out, and the hits of all processes' learners."""
        total = Counter({"tasks": self._tasks})
        for counts in self._ask_everybody().values():
            total.update(counts)
        return dict(total)

    def close(self) -> None:
        """Stop the processes; what nobody waited for is dropped."""
        self._processes.shutdown(wait=True, cancel_futures=True)


SETTLE_PAUSE_S = 0.02
"""How long a process keeps one question to itself, so that the others get theirs."""

_settled: list[Learner] = []
"""The learner of a pool process."""


def _settle(make: Callable[[], Learner], environment: dict[str, str]) -> None:
    """Make this process's learner. A fork server keeps the environment of its own start; ours is the caller's of today."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the caller's to deal with
    os.environ.clear()
    os.environ.update(environment)
    _settled[:] = [make()]


def _counted_here(_: int) -> tuple[int, dict[str, int]]:
    sleep(SETTLE_PAUSE_S)
    return os.getpid(), _settled[0].counts()


def _work(task: Task) -> Finished:
    return attempt(_settled[0], task)


@dataclass(slots=True)
class Computed:
    """A task of a `Beside` has ended. job: (node, id). Instants are monotonic ns."""

    job: tuple[str, int]
    finished: Finished
    started_at: int
    ended_at: int


class Beside:
    """One thread that runs tasks, earliest due first, and hands each end to `done`."""

    def __init__(self, learner: Learner, done: Callable[[Computed], None]) -> None:
        self._learner, self._done = learner, done
        self._waiting: list[tuple[int, int, tuple[str, int], Task]] = []
        self._changed = Condition()
        self._serial = 0
        self._closed = False
        self._computing_since: int | None = None
        self._thread = Thread(target=self._run, name="compute", daemon=True)
        self._thread.start()

    def submit(self, job: tuple[str, int], task: Task, due: int) -> None:
        """Take a task; `due` orders it among those that wait."""
        with self._changed:
            heappush(self._waiting, (due, self._serial, job, task))
            self._serial += 1
            self._changed.notify()

    def computing(self) -> int:
        """How long the running task has taken so far, in ns; 0 when none runs."""
        since = self._computing_since
        return 0 if since is None else monotonic_ns() - since

    def close(self) -> None:
        """Start nothing more. A task that runs is not waited for: nobody wants its result."""
        with self._changed:
            self._closed = True
            self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._waiting and not self._closed:
                    self._changed.wait()
                if self._closed:
                    return
                _, _, job, task = heappop(self._waiting)
            started = self._computing_since = monotonic_ns()
            finished = attempt(self._learner, task)
            self._computing_since = None
            self._done(Computed(job, finished, started, monotonic_ns()))
