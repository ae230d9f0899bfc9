"""The simulated world: one process, an event heap, a virtual clock.

A completion's instant is known when the work is handed out, so nothing is waited for: the heap says
what comes next, the clock jumps there, a machine steps. The computing itself runs in an executor,
ahead of the clock where there is a pool; the driver reads a result when the clock gets to it.

The clock advances before a step, never during one. Entries of one instant come in the order in which
they were pushed (`serial`); `ties` shuffles them, to prove that no result hangs on that order.
"""

from dataclasses import dataclass, replace
from heapq import heappop, heappush
from random import Random
from time import perf_counter
from typing import Any, Protocol

from flame.core.effects import CancelTimer, Compute, Effect, Emit, Send, SetTimer, Stop
from flame.core.events import ComputeDone, ComputeFailed, Event, PeerUp, Received, Started, StopAsked, TimerFired, TimerKey
from flame.core.machine import IllegalEvent
from flame.core.messages import AGGREGATOR, Message
from flame.core.time import in_seconds
from flame.roles.aggregator import Aggregator
from flame.roles.trainer import Trainer
from flame.runtime import codec
from flame.runtime.compute import Executor, Ticket
from flame.runtime.journal import Blank, Journal
from flame.runtime.observe import comm_record
from flame.telemetry.records import AggEval, AggRound, TrainerRound
from flame.telemetry.writer import Sink


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


class Simulation:
    """One run. wire_roundtrip: encode and decode every message. ties: shuffles entries of one instant."""

    def __init__(
        self,
        aggregator: Aggregator,
        trainers: dict[str, Trainer],
        executor: Executor,
        journal: Journal | Blank,
        sink: Sink,
        *,
        watcher: Watcher | None = None,
        wire_roundtrip: bool = False,
        ties: Random | None = None,
    ) -> None:
        self._aggregator, self._trainers = aggregator, trainers
        self._executor, self._journal, self._sink, self._watcher = executor, journal, sink, watcher
        self._wire_roundtrip, self._ties = wire_roundtrip, ties
        self._heap: list[tuple[int, float, int, str, Event | None, Any]] = []
        self._cancelled: set[TimerKey] = set()
        self._serial = 0
        self._now = 0
        self._counts_bytes = sink.takes("full")
        self._ended: Stop | None = None
        self._started = 0.0
        self._compute_s = 0.0

    def run(self) -> Outcome:
        """Simulate to the end. Raises IllegalEvent, with step and time, where a machine got what it can't take."""
        opened = perf_counter()
        for node, trainer in self._trainers.items():
            self._step(AGGREGATOR, PeerUp(node, trainer.profile))
        self._started = perf_counter()
        self._step(AGGREGATOR, Started())
        while self._ended is None and self._heap:
            self._advance()
        wall = perf_counter() - self._started
        if self._ended is None:
            raise RuntimeError(f"the heap ran empty before a stop: {self._aggregator.describe()}")
        return Outcome(self._ended.verdict, self._ended.reason, self._now, self._started - opened, wall, self._journal.seq)

    def _advance(self) -> None:
        at, _, _, node, event, waiting = heappop(self._heap)
        if isinstance(event, TimerFired) and event.key in self._cancelled:
            self._cancelled.discard(event.key)
            return
        self._now = at
        self._step(node, self._answer(node, *waiting) if event is None else event)
        asked = self._watcher.stop_asked() if self._watcher is not None else None
        if asked is not None and self._ended is None:
            self._step(AGGREGATOR, asked)

    def _step(self, node: str, event: Event) -> None:
        machine = self._aggregator if node == AGGREGATOR else self._trainers[node]
        try:
            effects = machine.step(self._now, event)
        except IllegalEvent as error:
            raise located(error, self._journal.seq, self._now, "virtual") from None
        self._journal.append(node, self._now, event, machine.released, effects)
        for effect in effects:
            self._do(node, effect)

    def _do(self, node: str, effect: Effect) -> None:
        match effect:
            case Emit(record=record):
                self._write(node, record)
            case Send(to=to, msg=msg):
                self._send(node, to, msg)
            case Compute(job=job, task=task, not_before=not_before):
                self._push(max(self._now, not_before), node, None, (job, self._executor.submit(task)))
            case SetTimer(key=key, at=at):
                self._push(max(self._now, at), node, TimerFired(key))
            case CancelTimer(key=key):
                self._cancelled.add(key)
            case Stop() if node == AGGREGATOR or effect.verdict == "CRASH":
                self._ended = self._ended or effect

    def _send(self, node: str, to: str, msg: Message) -> None:
        if self._counts_bytes:
            record = comm_record(node, to, msg)
            if record is not None:
                self._write(node, record)
        self._push(self._now, to, Received(node, codec.decode(codec.encode(msg)) if self._wire_roundtrip else msg))

    def _answer(self, node: str, job: int, ticket: Ticket) -> Event:
        finished = ticket.wait()
        self._compute_s = finished.seconds
        if finished.result is None:
            return ComputeFailed(job, finished.error or "no result")
        return ComputeDone(job, finished.result)

    def _push(self, at: int, node: str, event: Event | None, waiting: Any = None) -> None:
        tie = self._ties.random() if self._ties else 0.0
        heappush(self._heap, (at, tie, self._serial, node, event, waiting))
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
            record = replace(record, phases={"compute": self._compute_s})
        stamp = self._aggregator.inbox.frontier if node == AGGREGATOR else None
        self._sink.write(node, self._now, stamp, record)

    def _saw(self, record: AggRound | AggEval) -> None:
        if self._watcher is not None:
            self._watcher.saw(self._now, record)


def located(error: IllegalEvent, seq: int, now: int, clock: str) -> IllegalEvent:
    """The same error with its place in the run."""
    error.args = (f"{error.args[0]}\n  step {seq} at {in_seconds(now):.3f} s {clock}",)
    return error
