"""One process of the fake real world: what `flame.runtime.real.Driver` is to its side, on a virtual wall.

It steps machines, appends to the journal, carries out effects, holds results until their `not_before`,
and computes one job at a time, earliest due first. Its clock has an epoch of its own. The world that
it lives in (`jitter.World`) has the heap, the network and the dice.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

from flame.core.effects import CancelTimer, Compute, Effect, Emit, Send, SetTimer, Stop
from flame.core.events import ComputeDone, ComputeFailed, Event, TimerFired, TimerKey
from flame.core.machine import Machine
from flame.core.messages import AGGREGATOR, End, Heartbeat, Message, Presence
from flame.core.tasks import Task
from flame.core.time import seconds
from flame.runtime.compute.executors import attempt
from flame.runtime.transport import codec
from flame.runtime.transport.mqtt import Inbound

if TYPE_CHECKING:
    from .jitter import World

FOREVER = 1 << 62


class Process:
    """What a driver is to its side: machines, journal, timers, computing, a way out."""

    def __init__(self, world: World, name: str, incarnation: str, machines: dict[str, Any], side: Any) -> None:
        self.world, self.name, self.incarnation, self.machines, self.side = world, name, incarnation, machines, side
        self.epoch = world.rng.randint(0, 10**15)
        self.alive, self.killed, self.offline_until = True, False, 0
        self.origin: int | None = None
        self.waited = 0
        self._cancelled: set[TimerKey] = set()
        self.ended: Stop | None = None
        self.journal = world.trace
        self.compute, self.transport = Computing(self), Wire(self)

    def start(self) -> None:
        """Announce, and beat from now on."""
        self.enter(lambda: self.side.begin(self))
        self.enter(self._beat)

    def _beat(self) -> None:
        self.side.beat(self)
        self.after(seconds(self.world.condition.limits.heartbeat_s), self._beat)

    def enter(self, call: Callable[[], None]) -> None:
        """Do something in this process, by its clock."""
        before, self.world.stepping = self.world.stepping, self
        try:
            call()
        finally:
            self.world.stepping = before

    @property
    def now(self) -> int:
        """ns since ready; 0 before."""
        return 0 if self.origin is None else self.world.wall + self.epoch - self.origin

    def after(self, delay: int, call: Callable[[], None]) -> None:
        """Call in this process, after `delay` ns."""
        self.world.at(self.world.wall + delay, self, call)

    def end(self, stop: Stop) -> None:
        """Leave the loop."""
        self.ended = self.ended or stop

    def note(self, record: Any, *, node: str | None = None) -> None:
        """Telemetry: only what has become of faults is counted."""
        if record.kind == "fault":
            self.world.counts[f"noted {record.what}"] += 1

    # ---- machines

    def deliver(self, node: str, event: Event) -> None:
        """Step a machine and carry out its effects."""
        machine: Machine = self.machines[node]
        now = self.now
        effects = machine.step(now, event)
        self.journal.append(node, now, event, machine.released, effects)
        self.side.stepped(self, node, machine)
        for effect in effects:
            self._do(node, effect)

    def _do(self, node: str, effect: Effect) -> None:
        match effect:
            case Emit(record=record):
                self.side.fill(self, record)
            case Send(to=to, msg=msg):
                for each in self.side.outgoing(self, node, to, msg):
                    self.post(node, to, each)
            case Compute(job=job, task=task, not_before=not_before):
                self.compute.submit(node, job, task, not_before)
            case SetTimer(key=key, at=at):
                late = self.world.jitter(self.world.network.timers)
                self.after(max(0, at - self.now) + late, lambda: self._timer(node, key))
            case CancelTimer(key=key):
                self._cancelled.add(key)
            case Stop():
                self.side.stopped(self, node, effect)

    def _timer(self, node: str, key: TimerKey) -> None:
        if key not in self._cancelled:
            self.deliver(node, TimerFired(key))

    def post(self, src: str, to: str, msg: Message, *, again: bool = False) -> None:
        """Send one message, as bytes."""
        self.world.counts[f"{'again' if again else 'sent'} {msg.kind}"] += 1
        there = to if to == AGGREGATOR else self.world.host_of[to]
        self.world.carry(self, there, inbound("message", src, to, self.incarnation, [codec.decode(codec.encode(msg))]))


class Computing:
    """One thread: a job at a time, earliest due first; a result is held until its `not_before`."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._waiting: list[tuple[int, int, str, int, Task]] = []
        self._serial = 0
        self._since: int | None = None
        self.sticks = False

    def computing(self) -> int:
        """How long the running job has taken so far."""
        return 0 if self._since is None else self._process.world.wall - self._since

    def submit(self, node: str, job: int, task: Task, not_before: int) -> None:
        """Take a job."""
        heappush(self._waiting, (not_before, self._serial, node, job, task))
        self._serial += 1
        self._next()

    def _next(self) -> None:
        if self._since is not None or not self._waiting:
            return
        world, (not_before, _, node, job, task) = self._process.world, heappop(self._waiting)
        self._since = world.wall
        took = FOREVER if self.sticks else world.jitter(world.network.evals if node == AGGREGATOR else world.network.computes)
        self._process.after(took, lambda: self._finish(node, job, task, not_before))

    def _finish(self, node: str, job: int, task: Task, not_before: int) -> None:
        self._since = None
        self._next()
        process = self._process
        finished, overrun = attempt(process.world.learner, task), process.now > not_before
        process.world.counts["overruns"] += overrun and node != AGGREGATOR
        event: Event = ComputeFailed(job, str(finished.error))
        if finished.result is not None:
            event = ComputeDone(job, finished.result, overrun=overrun)
        process.after(max(0, not_before - process.now), lambda: process.deliver(node, event))


class Wire:
    """The transport as the sides see it."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._announced: list[Presence] = []

    def _carry(self, kind: Any, messages: list[Any]) -> None:
        process = self._process
        process.world.carry(process, AGGREGATOR, inbound(kind, process.name, "", process.incarnation, messages))

    def announce(self, presences: list[Presence]) -> None:
        """Say that these trainers are here."""
        self._announced = presences
        self._carry("presence", presences)

    def renew(self) -> None:
        """Say it again."""
        if self._announced:
            self._carry("presence", self._announced)

    def beat(self, heartbeat: Heartbeat) -> None:
        """A sign of life."""
        self._carry("beat", [heartbeat])

    def end(self, end: End) -> None:
        """The world sees it by itself."""


def inbound(kind: Any, src: str, dst: str, incarnation: str, messages: list[Any]) -> Inbound:
    """A message as the transport hands it to a side."""
    nodes = [message.node for message in messages if isinstance(message, Presence)]
    return Inbound(kind=kind, src=src, dst=dst, incarnation=incarnation, messages=messages, nodes=nodes, measured={}, nbytes=0, at_ns=0)
