"""The simulated world: one process, an event heap, a virtual clock.

A completion's instant is known when the work is handed out, so nothing is waited for: the heap says
what comes next, the clock jumps there, a machine steps. The computing itself runs in an executor,
ahead of the clock where there is a pool; the driver reads a result when the clock gets to it.

The clock advances before a step, never during one. Entries of one instant come in the order in which
they were pushed: what is due now waits in a queue, behind what the heap has for this instant, which was
pushed before. `ties` shuffles them all, to prove that no result hangs on that order.
"""

import gc
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from random import Random
from time import perf_counter
from typing import Any, Protocol

from flame.core.effects import CancelTimer, Compute, Effect, Emit, Send, SetTimer, Stop
from flame.core.events import ComputeDone, ComputeFailed, Event, PeerUp, Received, Started, StopAsked, TimerFired, TimerKey
from flame.core.machine import IllegalEvent
from flame.core.messages import AGGREGATOR, Assign, Message, Update
from flame.core.tasks import Task
from flame.roles.aggregator import Aggregator
from flame.roles.trainer import Trainer
from flame.runtime.books.journal import Blank, Journal
from flame.runtime.compute.executors import Executor, Ticket
from flame.runtime.compute.latency import Latency, Prompt
from flame.runtime.observe import comm_record, located
from flame.runtime.transport import codec
from flame.telemetry.records import AggEval, AggRound, TrainerRound
from flame.telemetry.writer import Sink

GC_THRESHOLD = (50_000, 20, 50)
"""Allocations between two rounds of the collector, and rounds between two older generations."""


@dataclass(slots=True)
class Outcome:
    """How a run ended. now: the last instant, ns since ready. joined_s: wall seconds of everybody's joining. wall_s: from ready to stop."""

    verdict: str
    reason: str
    now: int
    joined_s: float
    wall_s: float
    steps: int


class Watcher(Protocol):
    """Who is told of the progress, and may ask for a stop."""

    def saw(self, now: int, record: AggRound | AggEval) -> None:
        """A cycle has closed, or an evaluation was released."""
        ...

    def stop_asked(self) -> StopAsked | None:
        """A stop that somebody wants, now."""
        ...


@dataclass(slots=True)
class Job:
    """What a machine waits for: the task that it handed out, and the claim on its result; None: to be handed out again."""

    number: int
    task: Task
    ticket: Ticket | None

    def __reduce__(self) -> tuple[Any, ...]:
        """A claim can't be kept; the task can be handed out again."""
        return Job, (self.number, self.task, None)


@dataclass(slots=True)
class State:
    """All that a simulation goes on from. The machines are the two first; `elapsed_s` and `joined_s` are wall seconds."""

    aggregator: Aggregator
    trainers: dict[str, Trainer]
    heap: list[tuple[int, float, int, str, Event | Job]]
    soon: deque[tuple[str, Event | Job]]
    cancelled: set[TimerKey]
    serial: int
    now: int
    joined_s: float
    elapsed_s: float


class Simulation:
    """One run.

    keep: takes the model version and what makes a State, before each entry. latency: how late things are. wire_roundtrip:
    encode and decode every message. ties: shuffles entries of one instant.
    """

    def __init__(
        self,
        aggregator: Aggregator,
        trainers: dict[str, Trainer],
        executor: Executor,
        journal: Journal | Blank,
        sink: Sink,
        *,
        watcher: Watcher | None = None,
        keep: Callable[[int, Callable[[], State]], None] | None = None,
        latency: Latency | None = None,
        wire_roundtrip: bool = False,
        ties: Random | None = None,
    ) -> None:
        self._aggregator, self._trainers = aggregator, trainers
        self._executor, self._journal, self._sink, self._watcher, self._keep = executor, journal, sink, watcher, keep
        self._wire_roundtrip, self._ties, self._latency = wire_roundtrip, ties, latency or Prompt()
        self._heap: list[tuple[int, float, int, str, Event | Job]] = []
        self._soon: deque[tuple[str, Event | Job]] = deque()
        self._cancelled: set[TimerKey] = set()
        self._serial = 0
        self._now = 0
        self._counts_bytes = sink.takes("full")
        self._ended: Stop | None = None
        self._started = 0.0
        self._joined_s = 0.0
        self._phases: dict[str, float] = {}
        self._coded: dict[tuple[str, int], dict[str, float]] = {}

    def run(self) -> Outcome:
        """Simulate to the end. Raises IllegalEvent, with step and time, where a machine got what it can't take."""
        opened = perf_counter()
        for node, trainer in self._trainers.items():
            self._step(AGGREGATOR, PeerUp(node, trainer.profile))
        self._started = perf_counter()
        self._joined_s = self._started - opened
        self._step(AGGREGATOR, Started())
        return self._loop()

    def state(self) -> State:
        """What to go on from, as it is now: to be written before the next entry, not to be held."""
        elapsed = perf_counter() - self._started
        return State(
            self._aggregator, self._trainers, self._heap, self._soon, self._cancelled, self._serial, self._now, self._joined_s, elapsed
        )

    def resume(self, state: State) -> Outcome:
        """Go on from a state that was kept, whose machines this simulation was made with, to the end."""
        self._heap, self._soon, self._cancelled = state.heap, state.soon, state.cancelled
        self._serial, self._now, self._joined_s = state.serial, state.now, state.joined_s
        self._started = perf_counter() - state.elapsed_s
        return self._loop()

    def _loop(self) -> Outcome:
        with _frozen():
            while self._ended is None and (self._heap or self._soon):
                if self._keep is not None:
                    self._keep(self._aggregator.cycle.progress.model_version, self.state)
                self._advance(*self._next())
        wall = perf_counter() - self._started
        if self._ended is None:
            raise RuntimeError(f"the heap ran empty before a stop: {self._aggregator.describe()}")
        return Outcome(self._ended.verdict, self._ended.reason, self._now, self._joined_s, wall, self._journal.seq)

    def _next(self) -> tuple[str, Event | Job]:
        """The next entry; the clock is where it is due."""
        if self._soon and not (self._heap and self._heap[0][0] <= self._now):
            return self._soon.popleft()
        self._now, _, _, node, entry = heappop(self._heap)
        return node, entry

    def _advance(self, node: str, entry: Event | Job) -> None:
        if self._cancelled and isinstance(entry, TimerFired) and entry.key in self._cancelled:
            self._cancelled.discard(entry.key)
            return
        event = self._answer(entry) if isinstance(entry, Job) else entry
        late = self._latency.late(self._now, event) if node == AGGREGATOR else None
        if late is not None:
            self._write(AGGREGATOR, late)
        self._step(node, event)
        asked = self._watcher.stop_asked() if self._watcher is not None else None
        if asked is not None and self._ended is None:
            self._step(AGGREGATOR, asked)

    def _step(self, node: str, event: Event) -> None:
        machine = self._aggregator if node == AGGREGATOR else self._trainers[node]
        try:
            effects = machine.step(self._now, event)
        except IllegalEvent as error:
            self._journal.append(node, self._now, event, (), None)
            raise located(error, node, self._journal.seq - 1, self._now, "virtual") from None
        self._journal.append(node, self._now, event, machine.released, effects)
        for effect in self._over_the_wire(node, effects) if self._wire_roundtrip else effects:
            self._do(node, effect)

    def _over_the_wire(self, node: str, effects: Sequence[Effect]) -> list[Effect]:
        """The same effects with their messages encoded and decoded, before anything is written of them; how long it took is kept."""
        return [replace(effect, msg=self._carried(node, effect)) if isinstance(effect, Send) else effect for effect in effects]

    def _carried(self, node: str, effect: Send) -> Message:
        started = perf_counter()
        data = codec.encode(effect.msg)
        encoded = perf_counter()
        msg = codec.decode(data)
        if isinstance(msg, Assign):
            self._coded[effect.to, msg.id] = {"decode": perf_counter() - encoded}
        elif isinstance(msg, Update):
            self._coded.setdefault((node, msg.id), {})["encode"] = encoded - started
        return msg

    def _do(self, node: str, effect: Effect) -> None:
        DO[type(effect)](self, node, effect)

    def _emit(self, node: str, effect: Emit) -> None:
        self._write(node, effect.record)

    def _send(self, node: str, effect: Send) -> None:
        msg = effect.msg
        if self._counts_bytes:
            record = comm_record(node, effect.to, msg)
            if record is not None:
                self._write(node, record)
        self._push(self._now + self._latency.leg(node, effect.to, msg), effect.to, Received(node, msg))

    def _compute(self, node: str, effect: Compute) -> None:
        at = effect.not_before + self._latency.beyond(node, effect.job)
        self._push(at, node, Job(effect.job, effect.task, self._executor.submit(effect.task)))

    def _set_timer(self, node: str, effect: SetTimer) -> None:
        self._push(effect.at, node, TimerFired(effect.key))

    def _cancel_timer(self, node: str, effect: CancelTimer) -> None:
        self._cancelled.add(effect.key)

    def _stop(self, node: str, effect: Stop) -> None:
        """The aggregator's end is the run's. A trainer's crash ends it too: the aggregator is asked to stop, and says so."""
        if node == AGGREGATOR:
            self._ended = self._ended or effect
        elif effect.verdict == "CRASH":
            self._step(AGGREGATOR, StopAsked(effect.reason, effect.verdict))

    def _answer(self, job: Job) -> Event:
        finished = (job.ticket or self._executor.submit(job.task)).wait()
        self._phases = finished.phases
        if finished.result is None:
            return ComputeFailed(job.number, finished.error or "no result")
        return ComputeDone(job.number, finished.result)

    def _push(self, at: int, node: str, entry: Event | Job) -> None:
        if at <= self._now and self._ties is None:
            self._soon.append((node, entry))
            return
        tie = self._ties.random() if self._ties else 0.0
        heappush(self._heap, (max(at, self._now), tie, self._serial, node, entry))
        self._serial += 1

    def _write(self, node: str, record: Any) -> None:
        if not self._sink.takes(record.level):
            return
        if isinstance(record, AggRound):
            record = replace(record, vclock_ns=self._now, wall_s=perf_counter() - self._started)
            self._saw(record)
        elif isinstance(record, AggEval):
            self._saw(record)
        elif isinstance(record, TrainerRound):
            record = replace(record, phases=self._phases | self._coded.pop((node, record.id), {}))
        stamp = self._aggregator.inbox.frontier if node == AGGREGATOR else None
        self._sink.write(node, self._now, stamp, record)

    def _saw(self, record: AggRound | AggEval) -> None:
        if self._watcher is not None:
            self._watcher.saw(self._now, record)


@contextmanager
def _frozen() -> Iterator[None]:
    """Leave what exists now out of the garbage collector's rounds, and make them rare: a loop makes next to no cycles."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLD)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


DO: dict[type, Callable[[Simulation, str, Any], None]] = {
    Emit: Simulation._emit,
    Send: Simulation._send,
    Compute: Simulation._compute,
    SetTimer: Simulation._set_timer,
    CancelTimer: Simulation._cancel_timer,
    Stop: Simulation._stop,
}
