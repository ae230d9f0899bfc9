"""What the aggregator's process does beyond stepping: presence, delivery, liveness.

It waits for everybody (bounded), checks that all were made from the same bits, and starts the clock, or lets it
go on from where a run was cut short. It keeps open assigns until they are answered, and finds silent workers.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from time import monotonic_ns
from typing import Any

from flame.core.effects import Stop
from flame.core.events import PeerDown, PeerUp, Received, Started, StopAsked
from flame.core.machine import Machine
from flame.core.messages import AGGREGATOR, Assign, End, Heartbeat, Message, Presence, Update
from flame.core.time import in_seconds, seconds
from flame.roles.aggregator import Aggregator
from flame.roles.inbox import UPDATE
from flame.roles.stuck import stuck_table
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
    Stalled,
    WorkerLost,
    WorkerRestarted,
)
from flame.runtime.jobs import Pending
from flame.runtime.real import Driver
from flame.runtime.transport.invitation import Invitation
from flame.runtime.transport.liveness import Liveness
from flame.runtime.transport.mqtt import Inbound
from flame.runtime.transport.session import Dispatches, life_of
from flame.telemetry.records import AggEval, AggRound, Fault, Lateness, Peer

WAITED_FOR = 5
"""Trainers that the note of a stall names."""


@dataclass(slots=True)
class Standing:
    """All that the aggregator's process goes on from; instants are ns since ready.

    arrived: updates that wait for their turn, id -> (arrival, due). closed: when the last cycle did; waited: ns for the mailbox since then.
    """

    aggregator: Aggregator
    dispatches: Dispatches
    arrived: dict[int, tuple[int, int]]
    pending: Pending
    closed: int
    waited: int


class AggregatorSide:
    """Presence, delivery and liveness around the aggregator machine.

    keep: takes the model version and what makes a Standing, whenever nothing is half-way. standing: what to go on from,
    where the run was cut short; its workers had `lives` lives before, and what comes from those is refused. invitation:
    for workers from elsewhere, where there are any.
    """

    def __init__(
        self, aggregator: Aggregator, digests: Presence, report: Callable[[Report], None],
        keep: Callable[[int, Callable[[], Standing]], None] | None = None, standing: Standing | None = None, lives: int = 0,
        invitation: Invitation | None = None,
    ) -> None:  # fmt: skip
        limits = aggregator.condition.limits
        self._aggregator, self._digests, self._report = aggregator, digests, report
        self._keep, self._standing, self._lives, self._invitation = keep, standing, lives, invitation
        self._ready_wait, self._grace = seconds(limits.ready_wait_s), seconds(limits.grace_s)
        self._dispatches = standing.dispatches if standing else Dispatches(seconds(limits.resend_s), aggregator.shelf.weights)
        self._liveness = Liveness(seconds(limits.grace_s))
        self._hosts: dict[str, list[str]] = {}
        self._present: dict[str, Presence] = {}
        self._arrived = standing.arrived if standing else {}
        self._since_close = self._stalled = 0
        self._connected = True

    # ---- getting ready

    def begin(self, driver: Driver) -> None:
        """Wait for everybody, and not for ever."""
        self._report(Ready(AGGREGATOR))
        if self._invitation is not None:
            driver.transport.invite(self._invitation.packed())
        driver.after(self._ready_wait, lambda: self._give_up(driver))

    def _give_up(self, driver: Driver) -> None:
        if driver.origin is None:
            missing = [node for node in self._aggregator.condition.nodes if node not in self._present]
            self._crash(
                driver, f"{len(missing)} trainers were not present after {in_seconds(self._ready_wait):.0f} s: {', '.join(missing[:8])}"
            )

    def _announced(self, driver: Driver, worker: str, incarnation: str, presences: list[Presence]) -> None:
        fault = next(filter(None, map(self._differs, presences)), None)
        if fault is not None and self._invitation is not None and worker in self._invitation.slots:
            driver.note(Fault("refused", worker, fault))
            return
        if fault is not None:
            self._crash(driver, fault)
            return
        self._hosts[worker] = [presence.node for presence in presences]
        self._liveness.present(worker, incarnation, monotonic_ns())
        for presence in presences:
            self._present[presence.node] = presence
            if driver.origin is not None:
                self._greet(driver, presence)
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

    def _greet(self, driver: Driver, presence: Presence) -> None:
        """Send a trainer what it must have: its open assign, with full weights for a new incarnation."""
        self._repeat(driver, presence.node, self._dispatches.present(presence.node, presence.incarnation, driver.now))

    def _start(self, driver: Driver) -> None:
        """Everybody is there: start the clock, or let it go on."""
        present = [self._present[node] for node in sorted(self._present)]
        driver.waited, self._since_close = 0, monotonic_ns()
        if (standing := self._standing) is not None:
            driver.go_on(standing.pending)
            driver.waited, self._since_close = standing.waited, monotonic_ns() - driver.now + standing.closed
        for presence in present:
            self._greet(driver, presence)
        if self._standing is None:
            for presence in present:
                driver.deliver(AGGREGATOR, PeerUp(presence.node, presence.profile))
            driver.origin = self._since_close = monotonic_ns()
            driver.deliver(AGGREGATOR, Started())

    def _crash(self, driver: Driver, reason: str) -> None:
        driver.deliver(AGGREGATOR, StopAsked(reason, "CRASH"))

    # ---- what arrives

    def received(self, driver: Driver, inbound: Inbound) -> None:
        """An update, a presence, a heartbeat, or a last will."""
        if life_of(inbound.incarnation) < self._lives:
            driver.note(Fault("refused", inbound.src, f"its life {inbound.incarnation} was before this run went on"))
            return
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
        if self._invitation is not None:
            driver.transport.beat(Heartbeat(AGGREGATOR, self._digests.incarnation, [], 0))
        for node, msg in self._dispatches.overdue(driver.now):
            self._repeat(driver, node, [msg])
        for worker, incarnation, why in self._liveness.silent(monotonic_ns()):
            self._liveness.starting(worker, self._ready_wait, monotonic_ns())
            self._report(Silent(worker, incarnation, why))
        self._look_for_a_stall(driver)

    def _look_for_a_stall(self, driver: Driver) -> None:
        """Say once, until a cycle closes, that none has for `grace_s` after all that is open would have been due."""
        if driver.origin is None or self._stalled == self._since_close:
            return
        aggregator, now = self._aggregator, monotonic_ns()
        expected = driver.origin + aggregator.roster.expected()
        if now - max(self._since_close, expected) > self._grace + seconds(aggregator.condition.eval.seconds):
            self._stalled = self._since_close
            self._report(Stalled(in_seconds(now - self._since_close), stuck_table(aggregator, WAITED_FOR)))

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

    def rested(self, driver: Driver) -> None:
        """Nothing is half-way: it may be kept, to go on from it later."""
        if self._keep is not None and driver.origin is not None and driver.ended is None:
            version = self._aggregator.cycle.progress.model_version
            self._keep(version, lambda: self._stands(driver, driver.origin or 0))

    def _stands(self, driver: Driver, origin: int) -> Standing:
        closed = self._since_close - origin
        return Standing(self._aggregator, self._dispatches, self._arrived, driver.pending(), closed, driver.waited)

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
