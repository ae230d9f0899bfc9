"""What a worker's process does beyond stepping: it announces its trainers, beats, runs each id once, and stops at the end of the run."""

from collections.abc import Callable
from time import monotonic_ns
from typing import Any

from flame.core.effects import Stop
from flame.core.events import Received
from flame.core.machine import Machine
from flame.core.messages import AGGREGATOR, Assign, Heartbeat, Message, Presence, Update
from flame.core.time import in_seconds
from flame.runtime.control import Order, Orphaned, Ready, Report
from flame.runtime.real import Driver
from flame.runtime.transport.mqtt import Inbound
from flame.runtime.transport.session import Answers
from flame.telemetry.records import Fault


class WorkerSide:
    """Announcing, heartbeats and answering for the trainers of one worker.

    patience: ns for which the aggregator may be silent; None where a launcher looks after this process.
    """

    def __init__(
        self, name: str, incarnation: str, presences: list[Presence], report: Callable[[Report], None], patience: int | None = None
    ) -> None:
        self._patience, self._heard = patience, monotonic_ns()
        self._name, self._incarnation, self._presences, self._report = name, incarnation, presences, report
        self._answers = Answers()
        self._beating = False

    def begin(self, driver: Driver) -> None:
        """Announce the trainers: the connection is up and subscribed."""
        driver.transport.announce(self._presences)
        self._report(Ready(self._name))

    def received(self, driver: Driver, inbound: Inbound) -> None:
        """An assign, weights, the end, or that the aggregator is there."""
        self._heard = monotonic_ns()
        if inbound.kind == "beat":
            return
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
        """The main loop is alive; whether the aggregator's is, nobody else may say."""
        if self._patience is not None and monotonic_ns() - self._heard > self._patience:
            driver.end(Stop("INTERRUPTED", f"nothing was heard of the run for {in_seconds(self._patience):.0f} s"))
        driver.transport.beat(Heartbeat(self._name, self._incarnation, self._answers.busy(), driver.compute.computing()))

    def outgoing(self, driver: Driver, src: str, to: str, msg: Message) -> list[Message]:
        """An update, remembered in case it is asked for again."""
        if isinstance(msg, Update):
            self._answers.sent(src, msg)
        return [msg]

    def stepped(self, driver: Driver, node: str, machine: Machine) -> None:
        """Nothing is kept."""

    def rested(self, driver: Driver) -> None:
        """A trainer that is gone is made anew: nothing is kept."""

    def fill(self, driver: Driver, record: Any) -> Any:
        """Nothing is measured beyond the phases."""
        return record

    def stopped(self, driver: Driver, node: str, stop: Stop) -> None:
        """A trainer's crash is the worker's; its end comes with the run's."""
        if stop.verdict == "CRASH":
            driver.end(stop)
