"""What is common to the processes of a real run: what they are told, and how trainers are served, whoever started the process."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from flame.config.condition import Condition
from flame.config.devices import profiles
from flame.config.world import World
from flame.core.effects import Stop
from flame.core.time import in_seconds, seconds
from flame.launch.preflight.placement import Seat
from flame.learn.learner import Learner
from flame.roles.trainer import Trainer
from flame.runtime.books.process_books import Books, open_books, presence
from flame.runtime.compute.executors import Beside
from flame.runtime.real import Driver
from flame.runtime.transport.access import Access
from flame.runtime.transport.mqtt import MqttTransport
from flame.runtime.transport.session import incarnation_of
from flame.runtime.worker_side import WorkerSide
from flame.telemetry.records import StepTiming


@dataclass(frozen=True, slots=True)
class Spec:
    """What a child needs to know. run: its directory. group: the process group to join, 0 to found it.

    code: digest of the library as the launcher has it; its children are forked from the same. environment: the
    launcher's, since a fork server keeps that of its own start. lives: of its workers before, where the run goes on
    from its checkpoint; 0 for a new run. seats: where each process sits, by its name.
    """

    run: Path
    condition: Condition
    world: World
    host: str
    port: int
    group: int
    code: str
    environment: dict[str, str]
    lives: int = 0
    seats: Mapping[str, Seat] = field(default_factory=dict)

    def seat(self, name: str) -> Seat:
        """That of one process."""
        return self.seats.get(name, Seat(self.world.device))

    def slots(self) -> dict[str, list[str]]:
        """Workers by name, with the trainers that are dealt to them in turn; none of them is empty."""
        nodes, workers = self.condition.nodes, self.world.workers + self.world.remote
        return {f"w{number}": list(nodes[number::workers]) for number in range(min(workers, len(nodes)))}

    def remote(self) -> list[str]:
        """Those of them who join from elsewhere: the last ones."""
        return list(self.slots())[self.world.workers :]


def serve(
    spec: Spec, name: str, life: int, nodes: list[str], learner: Learner,
    mailbox: "SimpleQueue[Any]", report: Callable[[Any], None], patience: int | None = None,
) -> Stop:  # fmt: skip
    """Host the trainers `nodes` until the run ends. patience: ns of the aggregator's silence, where there is no launcher here."""
    condition, world, facts, incarnation = spec.condition, spec.world, learner.facts, incarnation_of(name, life)
    books, devices = open_books(spec.run, name, str(life), condition, world, facts, nodes), profiles(condition)
    presences = [presence(node, incarnation, devices[node], facts, spec.code) for node in nodes]
    side = WorkerSide(name, incarnation, presences, report, patience)
    transport = transport_of(spec, name, incarnation, nodes, mailbox, listens=False, hears=patience is not None)
    compute = Beside(learner, mailbox.put)
    trainers = {node: Trainer(condition, devices[node], world.level, facts.layout) for node in nodes}
    driver = Driver(dict(trainers), side, transport, mailbox, compute, books.journal, books.sink, heartbeat(condition))
    stop = driver.run()
    close(books, nodes[0], driver, learner)
    transport.close()
    return stop


def transport_of(
    spec: Spec, name: str, incarnation: str, nodes: list[str], mailbox: "SimpleQueue[Any]", *, listens: bool, hears: bool = False
) -> MqttTransport:
    """A connected one. listens: to presence and heartbeats of all. hears: the aggregator's heartbeats. Raises TransportError."""
    limits, access = spec.condition.limits, Access.of(spec.world)
    transport = MqttTransport(
        spec.run.name, name, incarnation, spec.host, spec.port, nodes, mailbox.put, limits, listens, hears=hears, access=access
    )
    transport.connect(limits.ready_wait_s)
    return transport


def close(books: Books, node: str, driver: Driver, learner: Learner) -> None:
    """Stop computing, say what the optimisations did, and close the books."""
    driver.compute.close()
    books.sink.write(node, driver.now, None, StepTiming("loop", in_seconds(driver.now), learner.counts()))
    books.close()


def heartbeat(condition: Condition) -> int:
    """ns between two heartbeats."""
    return seconds(condition.limits.heartbeat_s)
