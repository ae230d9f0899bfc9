"""The two sides of the real world: what the aggregator's process does beyond stepping, and a worker's.

aggregator   waits for everybody (bounded), checks that all were made from the same bits, starts the
             clock; keeps open assigns until they are answered; finds silent workers
worker       announces its trainers, beats, runs each id once, and stops at the end of the run
"""

from collections.abc import Callable
from dataclasses import replace
from time import monotonic_ns
from typing import Any

from flame.core.effects import Stop
from flame.core.events import PeerDown, PeerUp, Received, Started, StopAsked
from flame.core.machine import Machine
from flame.core.messages import AGGREGATOR, Assign, End, Heartbeat, Message, Presence, Update
from flame.core.time import in_seconds, seconds
from flame.roles.aggregator import Aggregator
from flame.roles.inbox import UPDATE
from flame.runtime.control import (
    Alive,
    AskStop,
    Closed,
    Ended,
    Finish,
    Order,
    Orphaned,
    Ready,
    Report,
    Scored,
    Silent,
    WorkerLost,
    WorkerRestarted,
)
from flame.runtime.liveness import Liveness
from flame.runtime.mqtt import Inbound
from flame.runtime.real import Driver
from flame.runtime.session import Answers, Dispatches
from flame.telemetry.records import AggEval, AggRound, Fault, Lateness, Peer


class AggregatorSide:
    """Presence, delivery and liveness around the aggregator machine."""

    def __init__(self, aggregator: Aggregator, digests: Presence, report: Callable[[Report], None]) -> None:
        limits = aggregator.condition.limits
        self._aggregator, self._digests, self._report = aggregator, digests, report
        self._ready_wait, self._grace = seconds(limits.ready_wait_s), seconds(limits.grace_s)
        self._dispatches = Dispatches(seconds(limits.resend_s), aggregator.shelf.weights)
        self._liveness = Liveness(seconds(limits.grace_s))
        self._hosts: dict[str, list[str]] = {}
        self._present: dict[str, Presence] = {}
        self._arrived: dict[int, tuple[int, int]] = {}
        self._since_close = 0
        self._connected = True

    # ---- getting ready

    def begin(self, driver: Driver) -> None:
        """Wait for everybody, and not for ever."""
        self._report(Ready(AGGREGATOR))
        driver.after(self._ready_wait, lambda: self._give_up(driver))

    def _give_up(self, driver: Driver) -> None:
        if driver.origin is None:
            missing = [node for node in self._aggregator.condition.nodes if node not in self._present]
            self._crash(
                driver, f"{len(missing)} trainers were not present after {in_seconds(self._ready_wait):.0f} s: {', '.join(missing[:8])}"
            )

    def _announced(self, driver: Driver, worker: str, incarnation: str, presences: list[Presence]) -> None:
        self._hosts[worker] = [presence.node for presence in presences]
        self._liveness.present(worker, incarnation, monotonic_ns())
        for presence in presences:
            fault = self._differs(presence)
            if fault:
                self._crash(driver, fault)
                return
            back = presence.node in self._present
            self._present[presence.node] = presence
            self._repeat(driver, presence.node, self._dispatches.present(presence.node, presence.incarnation, driver.now))
            if back and driver.origin is not None:
                driver.note(Peer(presence.node, up=True, why="announced again", planned=False))
        if driver.origin is None and all(node in self._present for node in self._aggregator.condition.nodes):
            self._start(driver)

    def _differs(self, presence: Presence) -> str | None:
        for what in ("init", "data", "code"):
            mine, theirs = getattr(self._digests, what), getattr(presence, what)
            if mine != theirs:
                return (
                    f"`{presence.node}` has another {what} digest ({theirs}) than the aggregator ({mine}); "
                    "give both the same data, model and version"
                )
        return None

    def _start(self, driver: Driver) -> None:
        for node in sorted(self._present):
            driver.deliver(AGGREGATOR, PeerUp(node, self._present[node].profile))
        driver.origin = self._since_close = monotonic_ns()
        driver.waited = 0
        driver.deliver(AGGREGATOR, Started())

    def _crash(self, driver: Driver, reason: str) -> None:
        driver.deliver(AGGREGATOR, StopAsked(reason, "CRASH"))

    # ---- what arrives

    def received(self, driver: Driver, inbound: Inbound) -> None:
        """An update, a presence, a heartbeat, or a last will."""
        match inbound.kind:
            case "message":
                self._message(driver, inbound)
            case "presence":
                self._announced(driver, inbound.src, inbound.incarnation, [msg for msg in inbound.messages if isinstance(msg, Presence)])
            case "beat":
                self._heard(inbound.message)
            case "gone":
                driver.note(Fault("gone", inbound.src, "its connection has ended"))

    def _message(self, driver: Driver, inbound: Inbound) -> None:
        msg = inbound.message
        if not isinstance(msg, Update):
            driver.note(Fault("refused", inbound.src, f"a trainer sent a {msg.kind}"))
        elif self._dispatches.answered(inbound.src, msg.id):
            self._arrived[msg.id] = (inbound.at_ns - (driver.origin or 0), msg.stamp)
            compute_s = (inbound.measured or {}).get("compute_s")
            if compute_s is not None:
                self._liveness.computed(seconds(compute_s))
            driver.deliver(AGGREGATOR, Received(inbound.src, msg))
        else:
            driver.note(Fault("duplicate", inbound.src, f"update {msg.id} was answered before, or was never asked for"))

    def _heard(self, beat: Message) -> None:
        if isinstance(beat, Heartbeat):
            self._liveness.beat(beat.worker, beat.incarnation, beat.computing_ns, monotonic_ns())
            self._dispatches.heard(self._hosts.get(beat.worker, []), beat.busy)

    def connected(self, driver: Driver, again: bool) -> None:
        """Send everything that is open again, if the connection was lost."""
        self._connected = True
        if again:
            driver.transport.renew()
            self._liveness.excuse(monotonic_ns())
            driver.note(Fault("reconnected", AGGREGATOR, "the connection was lost and is back; open assigns are sent again"))
            for node, msg in self._dispatches.reconnected(driver.now):
                self._repeat(driver, node, [msg])

    def disconnected(self, driver: Driver) -> None:
        """Nobody can be heard, so nobody is silent."""
        self._connected = False

    def ordered(self, driver: Driver, order: Order) -> None:
        """The launcher's orders."""
        match order:
            case AskStop(why=why, verdict=verdict):
                driver.deliver(AGGREGATOR, StopAsked(why, verdict))
            case WorkerLost(worker=worker, nodes=nodes, why=why):
                self._liveness.forget(worker)
                self._lose(driver, nodes, why)
            case WorkerRestarted(worker=worker, why=why):
                self._liveness.starting(worker, self._ready_wait, monotonic_ns())
                driver.note(Fault("respawn", worker, why))
            case Orphaned() | Finish():
                driver.deliver(AGGREGATOR, StopAsked("the launcher is gone", "INTERRUPTED"))

    def _lose(self, driver: Driver, nodes: list[str], why: str) -> None:
        if driver.origin is None:
            self._crash(driver, why)
            return
        for node in nodes:
            self._dispatches.void(node)
            driver.deliver(AGGREGATOR, PeerDown(node, why))

    def beat(self, driver: Driver) -> None:
        """Send what is overdue, report who is silent; without a connection, neither can be done nor known."""
        self._report(Alive())
        if not self._connected:
            return
        for node, msg in self._dispatches.overdue(driver.now):
            self._repeat(driver, node, [msg])
        for worker, incarnation, why in self._liveness.silent(monotonic_ns()):
            self._liveness.starting(worker, self._ready_wait, monotonic_ns())
            self._report(Silent(worker, incarnation, why))

    def _repeat(self, driver: Driver, node: str, messages: list[Message]) -> None:
        for msg in messages:
            driver.post(AGGREGATOR, node, msg, again=True)

    # ---- what leaves

    def outgoing(self, driver: Driver, src: str, to: str, msg: Message) -> list[Message]:
        """An assign, after the weights if its trainer is new and holds none."""
        return self._dispatches.send(to, msg, driver.now) if isinstance(msg, Assign) else [msg]

    def stepped(self, driver: Driver, node: str, machine: Machine) -> None:
        """Write how late each released update was, and how long it was held for its turn."""
        now = driver.now
        for _, rank, trainer, assign in machine.released:
            if rank == UPDATE:
                arrived, due = self._arrived.pop(assign)
                driver.note(Lateness(assign, trainer, in_seconds(arrived - due), in_seconds(now - arrived)))

    def fill(self, driver: Driver, record: Any) -> Any:
        """Measured fields of an AggRound; tell the launcher."""
        if isinstance(record, AggRound):
            now, phases = driver.now, self._phases(driver)
            record = replace(record, wall_s=in_seconds(now), lag_s=in_seconds(now - record.stamp_ns), phases=phases)
            at = record.at
            version = at.model_version + record.committed
            self._report(Closed(now, at.cycle + 1, at.round, at.data_id, at.iteration, version, record.in_flight))
        elif isinstance(record, AggEval):
            self._report(Scored(record.accuracy, record.loss))
        return record

    def _phases(self, driver: Driver) -> dict[str, float]:
        """Wall since the last close: waiting for the mailbox, and working. They add up."""
        now = monotonic_ns()
        total, waited = now - self._since_close, driver.waited
        self._since_close, driver.waited = now, 0
        return {"wait": in_seconds(waited), "work": in_seconds(total - waited)}

    def stopped(self, driver: Driver, node: str, stop: Stop) -> None:
        """The run is over: tell everybody, the launcher first, so that it doesn't take the workers' leaving for deaths."""
        self._report(Ended(stop.verdict, stop.reason, driver.now, driver.journal.seq))
        driver.transport.end(End(stop.reason))
        driver.end(stop)


class WorkerSide:
    """Announcing, heartbeats and answering for the trainers of one worker."""

    def __init__(self, name: str, incarnation: str, presences: list[Presence], report: Callable[[Report], None]) -> None:
        self._name, self._incarnation, self._presences, self._report = name, incarnation, presences, report
        self._answers = Answers()
        self._beating = False

    def begin(self, driver: Driver) -> None:
        """Announce the trainers: the connection is up and subscribed."""
        driver.transport.announce(self._presences)
        self._report(Ready(self._name))

    def received(self, driver: Driver, inbound: Inbound) -> None:
        """An assign, weights, or the end."""
        if inbound.kind == "end":
            for node in driver.machines:
                driver.deliver(node, Received(AGGREGATOR, inbound.message))
            driver.end(Stop("COMPLETED", "the run has ended"))
        elif inbound.kind == "message" and inbound.src == AGGREGATOR and inbound.dst in driver.machines:
            self._message(driver, inbound.dst, inbound.message)
        else:
            driver.note(Fault("refused", inbound.src, f"a {inbound.kind} for `{inbound.dst}` isn't for this worker"))

    def _message(self, driver: Driver, node: str, msg: Message) -> None:
        if driver.origin is None and isinstance(msg, Assign):
            driver.origin = monotonic_ns() - msg.sent_now
        deliver, repeat = self._answers.receive(node, msg)
        if repeat is not None:
            driver.post(node, AGGREGATOR, repeat, again=True)
        if deliver is not None:
            driver.deliver(node, Received(AGGREGATOR, deliver))

    def connected(self, driver: Driver, again: bool) -> None:
        """A new broker knows nothing: announce again."""
        if again:
            driver.transport.renew()
            driver.note(Fault("reconnected", self._name, "the connection was lost and is back; trainers are announced again"))

    def disconnected(self, driver: Driver) -> None:
        """The transport renews the connection by itself."""

    def ordered(self, driver: Driver, order: Order) -> None:
        """Any order, and the launcher's end, means: stop."""
        driver.end(Stop("INTERRUPTED", "the launcher is gone" if isinstance(order, Orphaned) else "asked to stop"))

    def beat(self, driver: Driver) -> None:
        """The main loop is alive."""
        driver.transport.beat(Heartbeat(self._name, self._incarnation, self._answers.busy(), driver.compute.computing()))

    def outgoing(self, driver: Driver, src: str, to: str, msg: Message) -> list[Message]:
        """An update, remembered in case it is asked for again."""
        if isinstance(msg, Update):
            self._answers.sent(src, msg)
        return [msg]

    def stepped(self, driver: Driver, node: str, machine: Machine) -> None:
        """Nothing is kept."""

    def fill(self, driver: Driver, record: Any) -> Any:
        """Nothing is measured beyond the phases."""
        return record

    def stopped(self, driver: Driver, node: str, stop: Stop) -> None:
        """A trainer's crash is the worker's; its end comes with the run's."""
        if stop.verdict == "CRASH":
            driver.end(stop)
