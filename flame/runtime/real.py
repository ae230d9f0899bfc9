"""The real world: one process, its machines, a mailbox, a wall clock.

One loop does everything that touches a machine. Other threads (the MQTT client's, the computing one,
the launcher's pipe) put what they have into the mailbox and do nothing else. The loop sleeps until
the mailbox has something or the earliest deadline has come.

`now` is ns since `ready`. The aggregator's clock starts there; a worker's is set by its first assign,
which carries the sender's `now`: the error is one leg, and it never piles up.

What is particular to the aggregator's process or to a worker's is its `Side`: presence, delivery,
heartbeats. The driver knows neither.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from heapq import heappop, heappush
from queue import Empty, SimpleQueue
from time import monotonic_ns
from typing import Any, Protocol

from flame.core.effects import CancelTimer, Compute, Effect, Emit, Send, SetTimer, Stop
from flame.core.events import ComputeDone, ComputeFailed, Event, TimerFired, TimerKey
from flame.core.machine import IllegalEvent, Machine
from flame.core.messages import Message, Update
from flame.core.tasks import Task
from flame.core.time import in_seconds
from flame.runtime.books.journal import Blank, Journal
from flame.runtime.compute.executors import Beside, Computed
from flame.runtime.compute.meter import Meter
from flame.runtime.control import Order
from flame.runtime.jobs import Job, Pending
from flame.runtime.observe import comm_record, located
from flame.runtime.transport import codec
from flame.runtime.transport.mqtt import Connected, Disconnected, Inbound, MqttTransport, Raw, Refused
from flame.telemetry.records import Fault, TrainerRound
from flame.telemetry.writer import Sink

BEATS_PER_REPORT = 5
"""Heartbeats between two Resource records."""


class Side(Protocol):
    """What an aggregator's process and a worker's do differently."""

    def begin(self, driver: "Driver") -> None:
        """The transport is connected; the loop is about to start."""
        ...

    def received(self, driver: "Driver", inbound: Inbound) -> None:
        """Something arrived whole."""
        ...

    def connected(self, driver: "Driver", again: bool) -> None:
        """The connection is up; `again`: it was lost before."""
        ...

    def disconnected(self, driver: "Driver") -> None:
        """The connection is lost; the transport is renewing it."""
        ...

    def ordered(self, driver: "Driver", order: Order) -> None:
        """The launcher wants something."""
        ...

    def beat(self, driver: "Driver") -> None:
        """`heartbeat_s` have passed."""
        ...

    def outgoing(self, driver: "Driver", src: str, to: str, msg: Message) -> list[Message]:
        """What to send for a role's message."""
        ...

    def stepped(self, driver: "Driver", node: str, machine: Machine) -> None:
        """A machine has stepped."""
        ...

    def rested(self, driver: "Driver") -> None:
        """Nothing is half-way."""
        ...

    def fill(self, driver: "Driver", record: Any) -> Any:
        """The record with what was measured."""
        ...

    def stopped(self, driver: "Driver", node: str, stop: Stop) -> None:
        """A machine is done."""
        ...


class Driver:
    """Runs the machines of one process until its side ends it."""

    def __init__(
        self,
        machines: dict[str, Machine],
        side: Side,
        transport: MqttTransport,
        mailbox: "SimpleQueue[Any]",
        compute: Beside,
        journal: Journal | Blank,
        sink: Sink,
        heartbeat: int,
    ) -> None:
        self.machines, self.side, self.transport, self.sink = machines, side, transport, sink
        self.journal, self.compute = journal, compute
        self.ended: Stop | None = None
        self.origin: int | None = None
        self.waited = 0
        self._mailbox, self._heartbeat = mailbox, heartbeat
        self._deadlines: list[tuple[int, int, Callable[[], None]]] = []
        self._timers: dict[tuple[str, TimerKey], int] = {}
        self._serial = 0
        self._jobs: dict[tuple[str, int], Job] = {}
        self._decoded = 0
        self._meter, self._beats = Meter(), 0

    @property
    def now(self) -> int:
        """ns since ready; 0 before."""
        return 0 if self.origin is None else monotonic_ns() - self.origin

    # ---- the loop

    def run(self) -> Stop:
        """Serve until `end` is called."""
        self.side.begin(self)
        self._beat()
        while self.ended is None:
            self._serve(self._wait())
            self._fire()
            self.side.rested(self)
        self._report_resources()
        return self.ended

    def end(self, stop: Stop) -> None:
        """Leave the loop after what is being done."""
        self.ended = self.ended or stop

    def pending(self) -> Pending:
        """What this process waits for."""
        jobs = [(job.node, job.id, job.task, job.not_before - (self.origin or 0)) for job in self._jobs.values()]
        return Pending(self.now, [(node, key, at) for (node, key), at in self._timers.items()], jobs)

    def go_on(self, pending: Pending) -> None:
        """Wait for what a process that is gone was waiting for; the clock goes on from where it stood."""
        self.origin = monotonic_ns() - pending.now
        for timer in pending.timers:
            self._set(*timer)
        for job in pending.jobs:
            self._submit(*job)

    def after(self, delay: int, call: Callable[[], None]) -> None:
        """Call `call` in the loop, `delay` ns from now or later."""
        self._at(monotonic_ns() + delay, call)

    def _at(self, instant: int, call: Callable[[], None]) -> None:
        heappush(self._deadlines, (instant, self._serial, call))
        self._serial += 1

    def _wait(self) -> Any:
        started = monotonic_ns()
        pause = max(0, self._deadlines[0][0] - started) if self._deadlines else self._heartbeat
        try:
            return self._mailbox.get(timeout=in_seconds(pause))
        except Empty:
            return None
        finally:
            self.waited += monotonic_ns() - started

    def _fire(self) -> None:
        while self._deadlines and self._deadlines[0][0] <= monotonic_ns() and self.ended is None:
            heappop(self._deadlines)[2]()

    def _beat(self) -> None:
        self.side.beat(self)
        self._meter.sample()
        self._beats += 1
        if self._beats % BEATS_PER_REPORT == 0:
            self._report_resources()
        self.after(self._heartbeat, self._beat)

    def _report_resources(self) -> None:
        record = self._meter.report()
        if record is not None:
            self.note(record)

    def _serve(self, item: Any) -> None:
        match item:
            case None:
                pass
            case Raw():
                self._open(item)
            case Computed():
                self._computed(item)
            case Connected(again=again):
                self.side.connected(self, again)
            case Disconnected(why=why):
                self.note(Fault("disconnected", "", why))
                self.side.disconnected(self)
            case _:
                self.side.ordered(self, item)

    def _open(self, raw: Raw) -> None:
        started = monotonic_ns()
        opened = self.transport.open(raw)
        self._decoded = monotonic_ns() - started
        if isinstance(opened, Refused):
            self.note(Fault("refused", "", opened.why))
        elif opened is not None:
            self.side.received(self, opened)

    # ---- machines

    def deliver(self, node: str, event: Event) -> None:
        """Step a machine and carry out its effects, the journal first."""
        machine, now = self.machines[node], self.now
        try:
            effects = machine.step(now, event)
        except IllegalEvent as error:
            self.journal.append(node, now, event, (), None)
            raise located(error, node, self.journal.seq - 1, now, "wall") from None
        self.journal.append(node, now, event, machine.released, effects)
        self.side.stepped(self, node, machine)
        self._encode(node, effects)
        for effect in effects:
            self._do(node, effect)

    def _encode(self, node: str, effects: Sequence[Effect]) -> None:
        """Encode an update before its job's record is written, which says how long that took."""
        for effect in effects:
            if isinstance(effect, Send) and isinstance(effect.msg, Update):
                job = self._jobs[node, effect.msg.id]
                job.answered, job.update = monotonic_ns(), codec.encode(effect.msg)

    def _do(self, node: str, effect: Effect) -> None:
        match effect:
            case Emit(record=record):
                self._write(node, record)
            case Send(to=to, msg=msg):
                for number, each in enumerate(messages := self.side.outgoing(self, node, to, msg)):
                    self.post(node, to, each, again=number < len(messages) - 1)
            case Compute(job=job, task=task, not_before=not_before):
                self._submit(node, job, task, not_before)
            case SetTimer(key=key, at=at):
                self._set(node, key, at)
            case CancelTimer(key=key):
                self._timers.pop((node, key), None)
            case Stop():
                self.side.stopped(self, node, effect)

    def _submit(self, node: str, job: int, task: Task, not_before: int) -> None:
        self._jobs[node, job] = Job(node, job, task, not_before + (self.origin or 0), self._decoded, monotonic_ns())
        self.compute.submit((node, job), task, not_before)

    def _set(self, node: str, key: TimerKey, at: int) -> None:
        self._timers[node, key] = at
        self._at(at + (self.origin or 0), lambda: self._timer(node, key, at))

    def _timer(self, node: str, key: TimerKey, at: int) -> None:
        """Fire it, unless it was cancelled, or set again to another instant."""
        if self._timers.get((node, key)) == at:
            del self._timers[node, key]
            self.deliver(node, TimerFired(key))

    def _computed(self, done: Computed) -> None:
        """Hold a result until its `not_before`."""
        job = self._jobs[done.job]
        job.measured = done
        if done.ended_at >= job.not_before:
            self._answer(job)
        else:
            self._at(job.not_before, lambda: self._answer(job))

    def _answer(self, job: Job) -> None:
        done = job.measured
        assert done is not None
        if done.finished.result is None:
            self.deliver(job.node, ComputeFailed(job.id, done.finished.error or "no result"))
        else:
            self.deliver(job.node, ComputeDone(job.id, done.finished.result, overrun=done.ended_at > job.not_before))
        del self._jobs[job.node, job.id]

    # ---- out

    def post(self, src: str, to: str, msg: Message, *, again: bool = False) -> None:
        """Send one message. again: the session layer repeats it, so it doesn't count."""
        job = self._jobs.get((src, msg.id)) if isinstance(msg, Update) else None
        measured = {"compute_s": job.measured.finished.seconds} if job is not None and job.measured else None
        record = comm_record(src, to, msg)
        if record is not None:  # noted first: a kill between the two must not leave bytes that nobody counted
            self.note(replace(record, payload="resend") if again else record, node=src)
        self.transport.send(to, src, job.update if job is not None else codec.encode(msg), measured)

    def note(self, record: Any, *, node: str | None = None) -> None:
        """Write a record that the driver makes."""
        self.sink.write(node or next(iter(self.machines)), self.now, None, record)

    def _write(self, node: str, record: Any) -> None:
        if isinstance(record, TrainerRound):
            record = replace(record, phases=self._jobs[node, record.id].phases())
        else:
            record = self.side.fill(self, record)
        self.sink.write(node, self.now, getattr(getattr(self.machines[node], "inbox", None), "frontier", None), record)
