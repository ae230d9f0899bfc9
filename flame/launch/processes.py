"""What runs in the processes of a real run: the aggregator's and the workers' main functions.

Each has its output in `logs/`, belongs to the run's process group, leaves Ctrl-C to the launcher, and
holds a pipe to it: orders come through it, and when it ends, the launcher is gone and so is the child.
"""

import os
import signal
import sys
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from threading import Thread, Timer
from typing import Any

from flame.config.condition import Condition
from flame.config.devices import profiles
from flame.config.world import World
from flame.core.messages import AGGREGATOR
from flame.core.profile import Profile
from flame.core.time import in_seconds, seconds
from flame.launch.placement import Seat
from flame.learn.learner import Learner, build
from flame.roles.aggregator import Aggregator
from flame.roles.trainer import Trainer
from flame.runtime.books import Books, open_books, presence, verdict_of, write_verdict
from flame.runtime.compute import Beside
from flame.runtime.control import Crashed, Finish, Founded, Orphaned
from flame.runtime.mqtt import MqttTransport
from flame.runtime.real import Driver
from flame.runtime.sides import AggregatorSide, WorkerSide
from flame.telemetry.records import StepTiming

LAST_SECONDS = 5.0
"""How long a child without a launcher may take to end in order."""

FINISH_WAIT = 30.0
"""How long the aggregator waits, after the end, to be told that the workers are gone."""


@dataclass(frozen=True, slots=True)
class Spec:
    """What a child needs to know. run: its directory. group: the process group to join, 0 to found it.

    code: digest of the library as the launcher has it; its children are forked from the same. environment: the
    launcher's, since a fork server keeps that of its own start. seats: where each process sits, by its name.
    """

    run: Path
    condition: Condition
    world: World
    host: str
    port: int
    group: int
    code: str
    environment: dict[str, str]
    seats: Mapping[str, Seat] = field(default_factory=dict)

    def seat(self, name: str) -> Seat:
        """That of one process."""
        return self.seats.get(name, Seat(self.world.device))


def aggregator_main(spec: Spec, pipe: Connection) -> None:
    """The aggregator's process."""
    with _Child(spec, AGGREGATOR, pipe) as child:
        condition = spec.condition
        learner = build(condition, prefix_cache=spec.world.prefix_cache, device=spec.seat(AGGREGATOR).device)
        facts = learner.facts
        books = open_books(spec.run, AGGREGATOR, "1", condition, spec.world, facts, [AGGREGATOR])
        aggregator = Aggregator(condition, facts.init, facts.bins, spec.world.level, facts.layout)
        side = AggregatorSide(aggregator, presence(AGGREGATOR, "1", Profile(AGGREGATOR, 0), facts, spec.code), child.report)
        transport = _transport(spec, AGGREGATOR, "1", [AGGREGATOR], child.mailbox, listens=True)
        compute = Beside(learner, child.mailbox.put)
        driver = Driver({AGGREGATOR: aggregator}, side, transport, child.mailbox, compute, books.journal, books.sink, _heartbeat(condition))
        stop = driver.run()
        _count(books, AGGREGATOR, driver, learner)
        books.close()
        write_verdict(spec.run, verdict_of(aggregator, stop.verdict, stop.reason, in_seconds(driver.now)))
        child.wait_for_finish()
        transport.clear()
        transport.close()


def incarnation_of(worker: str, respawn: int) -> str:
    """The name of one life of a worker."""
    return f"{worker}.{respawn}"


def worker_main(spec: Spec, name: str, respawn: int, nodes: list[str], pipe: Connection) -> None:
    """A worker's process: it hosts the trainers `nodes`."""
    with _Child(spec, name, pipe) as child:
        condition, incarnation = spec.condition, incarnation_of(name, respawn)
        learner = build(condition, prefix_cache=spec.world.prefix_cache, device=spec.seat(name).device)
        facts = learner.facts
        books = open_books(spec.run, name, str(respawn), condition, spec.world, facts, nodes)
        devices = profiles(condition)
        side = WorkerSide(name, incarnation, [presence(node, incarnation, devices[node], facts, spec.code) for node in nodes], child.report)
        transport = _transport(spec, name, incarnation, nodes, child.mailbox, listens=False)
        compute = Beside(learner, child.mailbox.put)
        trainers = {node: Trainer(condition, devices[node], spec.world.level, facts.layout) for node in nodes}
        driver = Driver(dict(trainers), side, transport, child.mailbox, compute, books.journal, books.sink, _heartbeat(condition))
        stop = driver.run()
        _count(books, nodes[0], driver, learner)
        books.close()
        transport.close()
        if stop.verdict == "CRASH":
            child.report(Crashed(name, stop.reason))


def _count(books: Books, node: str, driver: Driver, learner: Learner) -> None:
    """Stop computing, and say what the optimisations did."""
    driver.compute.close()
    books.sink.write(node, driver.now, None, StepTiming("loop", in_seconds(driver.now), learner.counts()))


def _heartbeat(condition: Condition) -> int:
    return seconds(condition.limits.heartbeat_s)


def _transport(spec: Spec, name: str, incarnation: str, nodes: list[str], mailbox: "SimpleQueue[Any]", *, listens: bool) -> MqttTransport:
    limits = spec.condition.limits
    transport = MqttTransport(spec.run.name, name, incarnation, spec.host, spec.port, nodes, mailbox.put, limits, listens)
    transport.connect(limits.ready_wait_s)
    return transport


class _Child:
    """The frame of a child's life: group, signals, log file, pipe."""

    def __init__(self, spec: Spec, name: str, pipe: Connection) -> None:
        self.mailbox: SimpleQueue[Any] = SimpleQueue()
        self._spec, self._name, self._pipe = spec, name, pipe
        self._orphaned = False

    def __enter__(self) -> "_Child":
        os.environ.clear()
        os.environ.update(self._spec.environment)
        os.setpgid(0, self._spec.group)
        if (cores := self._spec.seat(self._name).cores) and hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, cores)
        if self._spec.group == 0:
            self.report(Founded())
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        self._redirect()
        Thread(target=self._listen, name="pipe", daemon=True).start()
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if error is not None:
            traceback.print_exception(error)
            self.report(Crashed(self._name, f"{type(error).__name__}: {error}"))
        sys.stdout.flush()
        sys.stderr.flush()
        self._pipe.close()
        os._exit(0 if error is None else 1)

    def report(self, message: Any) -> None:
        """Tell the launcher; if it is gone, the pipe's thread knows it too."""
        try:
            self._pipe.send(message)
        except OSError:
            self.mailbox.put(Orphaned())

    def wait_for_finish(self) -> None:
        """Until the launcher says that everybody else is gone, or FINISH_WAIT; not at all without a launcher."""
        if self._orphaned:
            return
        patience = Timer(FINISH_WAIT, lambda: self.mailbox.put(Orphaned()))
        patience.daemon = True
        patience.start()
        while not isinstance(self.mailbox.get(), Finish | Orphaned):
            pass

    def _listen(self) -> None:
        try:
            while True:
                self.mailbox.put(self._pipe.recv())
        except (EOFError, OSError):
            self._orphaned = True
            self.mailbox.put(Orphaned())
            last = Timer(LAST_SECONDS, lambda: os._exit(3))
            last.daemon = True
            last.start()

    def _redirect(self) -> None:
        path = self._spec.run / "logs" / f"{self._name}.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as log:
            for stream in (1, 2):
                os.dup2(log.fileno(), stream)
