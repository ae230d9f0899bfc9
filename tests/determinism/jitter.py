"""A fake real world: the project's own machines, sides and session layer on a virtual wall clock.

What is real here: `Aggregator`, `Trainer`, `AggregatorSide`, `WorkerSide`, and in them `Dispatches`,
`Answers` and `Liveness`. What is fake: processes, clocks, computing, the network, the launcher. One
heap of calls stands for all threads, and a seeded generator for everything that is not under control:

  network    each message has its own leg, may be lost, may come twice, much later; connections break,
             and what is on its way then is lost or is late
  computing  one job at a time per process, earliest due first; often longer than D
  clocks     each process has its own epoch; timers fire late and never early
  faults     workers die, hang, or compute for ever; they are started again as a new incarnation,
             with fresh trainers that hold no weights

`fake_process.Process` does what a driver does: steps, journal, holding results, timers.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from heapq import heappop, heappush
from unittest.mock import patch

from flame.config.condition import Condition
from flame.config.devices import profiles
from flame.core.messages import AGGREGATOR, End, Presence
from flame.core.profile import Profile
from flame.core.time import MILLISECOND, SECOND
from flame.learn.learner import Learner
from flame.roles.aggregator import Aggregator
from flame.roles.trainer import Trainer
from flame.runtime import aggregator_side
from flame.runtime.aggregator_side import AggregatorSide
from flame.runtime.control import Order, Report, Silent, WorkerLost, WorkerRestarted
from flame.runtime.transport.mqtt import Inbound
from flame.runtime.worker_side import WorkerSide

from .fake_process import Process, inbound
from .trace import Trace

PATIENCE = 300 * SECOND
"""Wall without a release after which a run counts as stuck: several respawns fit in."""
MAX_CALLS = 60_000
MAX_WORKERS = 3


@dataclass(frozen=True)
class Network:
    """How far a world is from ideal. Times in ms; a duration is drawn up to one of the bounds given.

    scales: one is drawn for a run, and multiplies legs, computes, evals and the lateness of timers, so
    that in some runs results wait for their due and in others everything is late. faults: kinds that
    may happen. every: mean ms between two. most: of them in one run. respawns: of each worker; None
    for no bound, since a worker that is lost for good is an intrusion.
    """

    legs: tuple[int, ...] = (1, 5, 5, 20, 200, 1500)
    computes: tuple[int, ...] = (0, 0, 0, 20, 200, 3000)
    evals: tuple[int, ...] = (0, 500, 9000)
    timers: tuple[int, ...] = (0, 2, 50, 1500)
    scales: tuple[float, ...] = (0.01, 0.1, 1.0)
    loss: float = 0.05
    duplicates: float = 0.1
    echo: int = 9000
    faults: tuple[str, ...] = ("none", "crash", "crash", "hang", "stick", "cut", "cut", "cut_aggregator", "broker")
    every: int = 8000
    most: int = 4
    respawns: int | None = None


ROUGH = Network()


class World:
    """One run. `counts` says what went wrong in it, so that a study can show that it did."""

    def __init__(self, condition: Condition, learner: Learner, network: Network = ROUGH) -> None:
        self.condition, self.learner, self.network = condition, learner, network
        self.rng = random.Random(f"world {condition.seed}")
        self.scale = self.rng.choice(network.scales)
        self.wall = 10**12
        self.trace = Trace()
        self.counts: Counter[str] = Counter()
        self.processes: dict[str, Process] = {}
        self.stepping: Process | None = None
        self._heap: list[tuple[int, int, Process | None, Callable[[], None]]] = []
        self._serial = 0
        self._released_at = self.wall
        self._restarts: Counter[str] = Counter()
        self.hosts = _deal(condition.nodes, self.rng.randint(1, MAX_WORKERS))
        self.host_of = {node: worker for worker, nodes in self.hosts.items() for node in nodes}

    def run(self) -> Trace:
        """Run to the end, or until nothing is released any more. What is raised ends up in the trace."""
        with patch.object(aggregator_side, "monotonic_ns", self._clock):
            try:
                self._start()
                self._loop()
                self._end()
            except Exception as error:  # a world without a rule may break in any way, and has then been caught
                self.trace.error = f"{type(error).__name__}: {error}"
        return self.trace

    def _clock(self) -> int:
        assert self.stepping is not None
        return self.wall + self.stepping.epoch

    def _start(self) -> None:
        machine = Aggregator(self.condition, self.learner.facts.init, self.learner.facts.bins)
        side = AggregatorSide(machine, _presence(AGGREGATOR, "1", Profile(AGGREGATOR, 0)), self._reported)
        self.processes[AGGREGATOR] = Process(self, AGGREGATOR, "1", {AGGREGATOR: machine}, side)
        self.processes[AGGREGATOR].start()
        for worker in self.hosts:
            self.at(self.wall + self.upto((0, 5000)), None, partial(self._spawn, worker))
        for _ in range(self.network.most):
            self.at(self.wall + self.upto((2 * self.network.every * self.network.most,)), None, self._fault)

    def _spawn(self, worker: str) -> None:
        incarnation = f"{worker}.{self._restarts[worker]}"
        devices = profiles(self.condition)
        presences = [_presence(node, incarnation, devices[node]) for node in self.hosts[worker]]
        machines = {node: Trainer(self.condition, devices[node]) for node in self.hosts[worker]}
        side = WorkerSide(worker, incarnation, presences, lambda report: None)
        self.processes[worker] = process = Process(self, worker, incarnation, machines, side)
        process.start()

    def _loop(self) -> None:
        aggregator = self.processes[AGGREGATOR]
        for _ in range(MAX_CALLS):
            if aggregator.ended is not None or self.wall - self._released_at > PATIENCE:
                return
            self.wall, _, process, call = heappop(self._heap)
            released = len(self.trace.released)
            if process is None:
                call()
            elif process.alive:
                process.enter(call)
            if len(self.trace.released) > released:
                self._released_at = self.wall
            self._look_for_crashes()

    def _look_for_crashes(self) -> None:
        for process in self.processes.values():
            if process.ended is not None and process.ended.verdict == "CRASH":
                raise RuntimeError(f"{process.name} has crashed: {process.ended.reason}")

    def _end(self) -> None:
        """The end of the run reaches whoever is there, busy or not."""
        end = inbound("end", AGGREGATOR, "", "1", [End("")])
        for name, process in self.processes.items():
            if name != AGGREGATOR and process.alive and self.trace.verdict:
                process.enter(partial(process.side.received, process, end))
                assert process.ended is not None

    # ---- the heap and the dice

    def at(self, instant: int, process: Process | None, call: Callable[[], None]) -> None:
        """Call at that instant of the wall; within `process`, if it still lives then."""
        heappush(self._heap, (max(instant, self.wall), self._serial, process, call))
        self._serial += 1

    def upto(self, bounds: tuple[int, ...]) -> int:
        """A duration in ns, up to one of the bounds, which are in ms."""
        return self.rng.randint(0, self.rng.choice(bounds) * MILLISECOND)

    def jitter(self, bounds: tuple[int, ...]) -> int:
        """The same, by this run's scale."""
        return round(self.upto(bounds) * self.scale)

    def happens(self, share: float) -> bool:
        """With that probability."""
        return self.rng.random() < share

    # ---- the network

    def carry(self, sender: Process, to: str, message: Inbound) -> None:
        """Bring a message to the process `to`, once, twice or not at all."""
        if message.kind == "beat" and self.wall < sender.offline_until:
            return
        leaves = max(self.wall, sender.offline_until)
        lost = self.happens(0.5 if leaves > self.wall else self.network.loss)
        if lost:
            self.counts[f"lost {_what(message)}"] += 1
            if message.kind == "presence":  # it is retained, and said again, unless the connection is lost with it
                self._cut(sender)
            return
        self._arrive(leaves + self.jitter(self.network.legs), to, message)
        if self.happens(self.network.duplicates):
            self.counts[f"twice {_what(message)}"] += 1
            self._arrive(leaves + self.upto((self.network.echo,)), to, message)

    def _arrive(self, instant: int, to: str, message: Inbound) -> None:
        self.at(instant, None, lambda: self._deliver(to, message))

    def _deliver(self, to: str, message: Inbound) -> None:
        process = self.processes.get(to)
        if process is None or not process.alive:
            self.counts["to nobody"] += 1
        elif self.wall >= process.offline_until:
            process.enter(lambda: process.side.received(process, message))
        elif message.kind not in ("presence", "gone") and self.happens(0.5):  # these two are retained
            self.counts[f"lost {_what(message)}"] += 1
        else:
            self._arrive(process.offline_until + self.jitter(self.network.legs), to, message)

    # ---- faults, and the launcher that deals with them

    def _fault(self) -> None:
        """One fault of one worker or of a connection."""
        kind = self.rng.choice(self.network.faults)
        workers = [process for process in self.processes.values() if process.alive and process.name != AGGREGATOR]
        if kind == "none" or not workers:
            return
        self.counts[kind] += 1
        worker = self.rng.choice(workers)
        match kind:
            case "crash":
                self._kill(worker.name, "killed")
            case "hang":
                worker.alive = False
            case "stick":
                worker.compute.sticks = True
            case "cut":
                self._cut(worker)
            case "cut_aggregator":
                self._cut(self.processes[AGGREGATOR])
            case "broker":
                for process in self.processes.values():
                    self._cut(process)

    def _cut(self, process: Process) -> None:
        if self.wall >= process.offline_until:
            process.offline_until = self.wall + self.upto((200, 4000))
            process.side.disconnected(process)
            self.at(process.offline_until, process, lambda: process.side.connected(process, again=True))

    def _reported(self, report: Report) -> None:
        if isinstance(report, Silent) and report.incarnation in (None, self.processes[report.worker].incarnation):
            self.counts["silent"] += 1
            self.at(self.wall + self.upto((5,)), None, lambda: self._kill(report.worker, report.why))

    def _kill(self, worker: str, why: str) -> None:
        """Kill a worker, and start it again, or give it up when its respawns are spent."""
        process, aggregator = self.processes[worker], self.processes[AGGREGATOR]
        if process.killed:
            return
        process.alive, process.killed = False, True
        spent = self.network.respawns is not None and self._restarts[worker] >= self.network.respawns
        order: Order = WorkerLost(worker, self.hosts[worker], why) if spent else WorkerRestarted(worker, why)
        self._restarts[worker] += 1
        self._arrive(self.wall + self.jitter(self.network.legs), AGGREGATOR, inbound("gone", worker, "", process.incarnation, []))
        self.at(self.wall, aggregator, lambda: aggregator.side.ordered(aggregator, order))
        if not spent:
            self.at(self.wall + self.upto((300, 3000)), None, lambda: self._spawn(worker))


def _what(message: Inbound) -> str:
    return message.messages[0].kind if message.kind == "message" else message.kind


def _presence(node: str, incarnation: str, profile: Profile) -> Presence:
    return Presence(node, incarnation, profile, "init", "data", "code")


def _deal(nodes: tuple[str, ...], workers: int) -> dict[str, list[str]]:
    return {f"w{first}": list(nodes[first::workers]) for first in range(min(workers, len(nodes)))}
