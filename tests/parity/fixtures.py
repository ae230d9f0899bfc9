"""Synthetic runs: a tiny deterministic model of the algorithm that writes plausible telemetry.

`write_pair` writes a real and a sim run of one condition that agree in everything that must agree.
What is measured (arrival, phases, wall) differs, as it does in life; `edits.py` spoils one run, one
thing at a time. Nothing of `flame.roles` or `flame.runtime` is used: what the rungs say of the real
simulator is asked in `test_conformance.py`.
"""

from dataclasses import dataclass, field, replace
from functools import reduce
from hashlib import blake2b
from heapq import heappop, heappush
from operator import xor
from pathlib import Path
from typing import Any, Literal

import orjson

from flame.config import Condition, World
from flame.config.availability import traces
from flame.config.fingerprint import condition_fp, run_fp
from flame.core.progress import Progress
from flame.core.rng import derive
from flame.core.time import SECOND
from flame.telemetry.records import (
    Abandoned,
    Accepted,
    AggEval,
    AggRound,
    Comm,
    Contributor,
    Dispatch,
    Lateness,
    Level,
    Peer,
    Record,
    RunEnd,
    RunMeta,
    Score,
    Selection,
    StepTiming,
    TaskRecv,
    TaskSend,
    TrainerRound,
    Withheld,
)
from flame.telemetry.rundir import RunDir, RunPair
from flame.telemetry.writer import Writer

LIBRARIES = {"python": "3.11.7", "torch": "2.13.0", "numpy": "2.4.6"}
TIMER, UPDATE = 4, 5
"""Ranks of what happens at one stamp."""
DELAYS = (1.0, 2.0, 1.5, 2.5)


def condition(**changes: Any) -> Condition:
    """Four trainers, all of whom make a cycle; bins of two or three iterations; some commits are forced by the cap."""
    plain: dict[str, Any] = {
        "baseline": "fwdllm", "trainers": 4, "goal": 4, "concurrency": 4, "delays": {"values": DELAYS},
        "commit": [{"type": "variance", "threshold": 0.2}, {"type": "cap", "max": 3}], "stop": {"cycles": 12},
        "payload": {"down": "once_per_version"},
    }  # fmt: skip
    return Condition.model_validate(plain | changes)


def asynchronous(**changes: Any) -> Condition:
    """C > K, each close commits: rows are open whenever it stops."""
    return condition(**{"loop": "async", "trainers": 6, "goal": 3, "concurrency": 5, "commit": ["agg_goal"]} | changes)


def away(cycles: int = 40, **changes: Any) -> Condition:
    """Trainers come and go as phones do: updates are withheld, and slots are given up."""
    given = {"trace": "phone_3st_50", "time_scale": 600.0, "abandon_s": 1_800.0}
    return asynchronous(availability=given, awareness="notified", stop={"cycles": cycles}, **changes)


def guided(cycles: int = 12, **changes: Any) -> Condition:
    """Choices are scored."""
    return asynchronous(select="oort", stop={"cycles": cycles}, **changes)


def arriving(condition: Condition) -> Condition:
    """The same condition in the fidelity tier."""
    return Condition.model_validate(condition.model_dump() | {"commit_order": "arrival", "pacing": "relative"})


def fidelity(cycles: int = 12, **changes: Any) -> Condition:
    """The same in arrival order."""
    return condition(commit_order="arrival", pacing="relative", stop={"cycles": cycles}, **changes)


@dataclass
class Assignment:
    """One row of the synthetic ledger."""

    id: int
    node: str
    stamp: int
    due: int
    at: Progress
    arrival: int


@dataclass
class Model:
    """The algorithm in small.

    noise: seeds what differs between runs in the fidelity tier (None: nothing does). fast_first: the selector's bias.
    """

    condition: Condition
    world: Literal["real", "sim"]
    writer: "Books"
    noise: int | None = None
    fast_first: bool = False
    at: Progress = field(default_factory=Progress)
    heap: list[tuple[int, int, str, int, Assignment | None]] = field(default_factory=list)
    """(stamp, rank, node, id, row): an update has its row, an abandon an id, a wake neither."""
    busy: set[str] = field(default_factory=set)
    owed: set[int] = field(default_factory=set)
    open: dict[int, Assignment] = field(default_factory=dict)
    passes: dict[str, int] = field(default_factory=dict)
    held: dict[str, int] = field(default_factory=dict)
    draws: dict[tuple[str, int], int] = field(default_factory=dict)
    taken: list[Assignment] = field(default_factory=list)
    now: int = 0
    serial: int = 0
    pool: int = 0
    accepts: int = 0
    closed: bool = True

    def run(self) -> None:
        """From the first selection to the stop rule."""
        self.traces = traces(self.condition)
        self.refill()
        while self.at.cycle < (self.condition.stop.cycles or 0):
            at, _, _, key, row = heappop(self.heap)
            self.now = max(self.now, at)
            if row is not None:
                self.release(row)
            else:
                self.timer(key)
        self.writer.agg(self.now, RunEnd(self.at, "COMPLETED", f"{self.at.cycle} cycles", self.accepts, 0, 0))

    @property
    def exact(self) -> bool:
        return self.condition.tier == "exact"

    @property
    def threshold(self) -> float | None:
        rule = self.condition.commit[0]
        return rule.threshold if rule.type == "variance" else None

    def draw(self, *path: int | str) -> float:
        """A number in [0, 1) that is the same in both runs, unless they are noisy."""
        seed = self.condition.seed if self.noise is None else self.noise
        return derive(seed, "model", *path) / 2**64

    def refill(self) -> None:
        """Fill the slots; a synchronous loop does so only when its cycle is closed."""
        idle = [node for node in self.condition.nodes if node not in self.busy]
        free = [node for node in idle if self.condition.awareness == "none" or self.traces[node].available(self.now)]
        want = self.condition.concurrency - self.in_flight
        if want <= 0 or (self.condition.loop == "sync" and not self.closed):
            return
        if not free:
            backs = [back for node in idle if (back := self.traces[node].next_available(self.now)) is not None]
            if backs and not any(node == "" for _, _, node, _, _ in self.heap):
                heappush(self.heap, (min(backs), TIMER, "", 0, None))
            return
        self.closed = False
        chosen = sorted(sorted(free, key=self.rank)[:want])
        goal, concurrency, policy = self.condition.goal, self.condition.concurrency, self.condition.select.type
        scores = [Score(node, "exploit", 1.0, 0.5, 0.5, 1.0 if node < "t3" else 0.5) for node in chosen] if policy == "oort" else None
        self.writer.agg(
            self.now,
            Selection(
                self.at, len(self.condition.nodes), len(free), chosen, self.in_flight, len(self.taken), concurrency, goal, policy,
                fingerprint(free), scores,
            ),
        )  # fmt: skip
        for node in chosen:
            self.dispatch(node)

    def rank(self, node: str) -> tuple[int, float]:
        """The least are chosen."""
        return int(node[1:]) % 4 if self.fast_first else 0, self.draw("select", self.serial, node)

    @property
    def in_flight(self) -> int:
        return len(self.busy) - len(self.owed)

    def dispatch(self, node: str) -> None:
        """One assign: the aggregator's records and, at once, the trainer's (whose clock is later)."""
        self.serial += 1
        self.busy.add(node)
        delay = round(self.condition.delays.values[int(node[1:]) % 4] * SECOND)  # type: ignore[index]
        done = self.now + delay
        due = self.traces[node].next_available(done)
        assert due is not None
        late = round(self.draw("arrival", self.serial) * 0.1 * SECOND) if self.noise is not None else 0
        row = Assignment(self.serial, node, self.now, due, self.at, due + late)
        payload = "none" if self.held.get(node) == self.at.model_version else "full"
        self.held[node] = self.at.model_version
        draw = self.draws[node, self.at.model_version] = self.draws.get((node, self.at.model_version), -1) + 1
        self.writer.agg(self.now, Comm("down", payload, row.id, node, 900 if payload == "full" else 180, int(payload == "full")))
        self.writer.agg(self.now, Dispatch(self.at, row.id, node, row.stamp, row.due, delay, 0, payload, draw, self.in_flight))
        if due > done:
            self.writer.agg(self.now, Withheld(self.at, row.id, node, done, due))
        self.train(row, delay)
        self.open[row.id] = row
        heappush(self.heap, (row.due if self.exact else row.arrival, UPDATE, node, row.id, row))
        abandon = self.condition.availability.abandon_ns
        if abandon is not None:
            heappush(self.heap, (self.now + abandon, TIMER, node, row.id, None))

    def timer(self, id: int) -> None:
        """A wake, or a slot that is given up if its update isn't there yet."""
        row = self.open.get(id)
        if row is not None:
            self.owed.add(id)
            self.writer.agg(self.now, Abandoned(self.at, id, row.node, self.now, self.now - row.stamp))
        self.refill()

    def train(self, row: Assignment, delay: int) -> None:
        """What the trainer says of one job."""
        at, write = row.at, self.writer.trainer
        total = self.passes[row.node] = self.passes.get(row.node, 0) + 2
        measured = {"queue": 0.001, "to_device": 0.002, "compute": 0.02, "to_host": 0.001, "encode": 0.002}
        phases = {"decode": 0.002, **measured, "hold": (row.due - row.stamp) / SECOND - sum(measured.values())}
        write(row.node, row.stamp, TaskRecv(row.id, row.node, at.model_version, at.data_id, at.iteration, row.stamp, row.due))
        write(
            row.node, row.due,
            TrainerRound(row.id, row.node, at.model_version, at.data_id, at.iteration, delay, False, 2, 1, total, 1.0, 8.0, 0.5, 8, phases),
        )  # fmt: skip
        write(row.node, row.due, Comm("up", "dense", row.id, row.node, 700, 1))
        write(row.node, row.due, TaskSend(row.id, row.node, row.due))

    def release(self, row: Assignment) -> None:
        """Accept; close the cycle when K are in."""
        self.accepts += 1
        self.pool += 1
        del self.open[row.id]
        self.taken.append(row)
        stamp = row.due if self.exact else self.now
        staleness = self.at.model_version - row.at.model_version
        self.writer.agg(
            self.now,
            Accepted(
                self.at, row.id, row.node, True, "accepted", row.at.model_version, row.at.data_id, row.at.iteration, staleness, 1.0,
                (row.stamp, stamp), row.due, 1.0, 8.0,
            ),
        )  # fmt: skip
        row.arrival = stamp
        if len(self.taken) == self.condition.goal:
            self.close()
        if self.at.cycle < (self.condition.stop.cycles or 0):
            self.refill()
        if self.world == "real":
            self.writer.agg(self.now, Lateness(row.id, row.node, 0.001 + 0.004 * derive(7, "late", row.id) / 2**64, 0.0))

    def close(self) -> None:
        """K accepts: keep the bin going, or commit and evaluate."""
        cohort, self.taken, self.closed = self.taken, [], True
        version = self.at.model_version
        self.busy -= {row.node for row in cohort}
        self.owed -= {row.id for row in cohort}
        reason, variance = self.decide()
        commits = reason != "keep"
        self.writer.close_cycle(
            self.now,
            AggRound(
                self.at, self.condition.goal, self.condition.concurrency,
                [Contributor(row.node, row.id, row.stamp, row.arrival, version - row.at.model_version, 1.0) for row in cohort],
                self.now, variance, self.threshold, commits, reason, "constant", 1.0 if commits else None, self.pool, self.in_flight,
                self.digest(cohort, commits), "state", self.accepts, 0,
            ),
        )  # fmt: skip
        self.at = replace(self.at, cycle=self.at.cycle + 1, iteration=self.at.iteration + 1)
        if commits:
            self.pool = 0
            self.at = replace(self.at, data_id=self.at.data_id + 1, iteration=0, model_version=self.at.model_version + 1)
            score = 0.5 + 0.4 * (1 - 0.9**self.at.model_version) + 0.02 * self.draw("score", self.at.model_version)
            self.writer.agg(self.now, AggEval(self.at, self.at.model_version, self.now, 1.2 - score, score, [score, None], score, 64))

    def decide(self) -> tuple[str, float | None]:
        """(reason, V): a bin takes two iterations or three, and the third is forced."""
        if self.threshold is None:
            return "goal", 0.3 + 0.1 * self.draw("variance", self.at.cycle)
        three = self.draw("iterations", self.at.model_version) < 0.4
        variance = (0.3 if self.at.iteration == 0 or three else 0.1) + 0.05 * self.draw("variance", self.at.cycle)
        return ("natural" if variance <= 0.2 else "cap" if self.at.iteration == 2 else "keep"), variance

    def digest(self, cohort: list[Assignment], commits: bool) -> str:
        """A digest that any other cohort, order or history changes."""
        self.theta = getattr(self, "theta", "init")
        if commits:
            self.theta = blake2b(f"{self.theta}{[row.node for row in cohort]}{self.at.cycle}".encode(), digest_size=16).hexdigest()
        return self.theta


def fingerprint(nodes: list[str]) -> str:
    """Of a set of nodes, as the roster makes it."""
    marks = [int.from_bytes(blake2b(node.encode(), digest_size=8).digest(), "big") for node in nodes]
    return f"{reduce(xor, marks, 0):016x}"


class Books:
    """The files of one synthetic run: one process in sim, an aggregator and a worker in real."""

    def __init__(self, path: Path, world: World, meta: RunMeta, nodes: tuple[str, ...]) -> None:
        clock, level = ("virtual" if world.kind == "sim" else "wall"), world.level
        self.sim, self._closed = world.kind == "sim", 0.0
        self._aggregator = self._open(path, "aggregator", clock, level)
        self._trainers = self._aggregator if self.sim else self._open(path, "w0", clock, level)
        hosts = [(self._aggregator, "aggregator", ["aggregator", *nodes])] if self.sim else [
            (self._aggregator, "aggregator", ["aggregator"]), (self._trainers, nodes[0], list(nodes)),
        ]  # fmt: skip
        for writer, node, hosted in hosts:
            writer.write(node, 0, None, replace(meta, nodes=hosted))
        if not self.sim:
            for node in nodes:
                self.agg(0, Peer(node, True, "announced", False))

    def _open(self, path: Path, process: str, clock: str, level: Level) -> Writer:
        return Writer(path / "telemetry" / f"{process}-1.jsonl", path.name, "1", clock, level)

    def agg(self, now: int, record: Record) -> None:
        """A record of the aggregator."""
        self._aggregator.write("aggregator", self._clock(now), now, record)

    def trainer(self, node: str, now: int, record: Record) -> None:
        """A record of a trainer."""
        self._trainers.write(node, self._clock(now), None, record)

    def close_cycle(self, now: int, record: AggRound) -> None:
        """An AggRound, with what its driver measures."""
        if self.sim:
            record = replace(record, vclock_ns=now, wall_s=now / SECOND / 50)
        else:
            wall = self._clock(now) / SECOND
            work = min(0.01, wall - self._closed)
            phases = {"wait": wall - self._closed - work, "work": work}
            record, self._closed = replace(record, wall_s=wall, lag_s=wall - now / SECOND, phases=phases), wall
        self.agg(now, record)

    def _clock(self, now: int) -> int:
        return now if self.sim else now + 3_000_000

    def close(self) -> None:
        """Flush."""
        self._aggregator.close()
        self._trainers.close()


def write_run(
    folder: Path, condition: Condition, kind: Literal["real", "sim"], *, noise: int | None = None, level: Level = "full",
    time: str = "20260101T101500Z", run_set: str = "quick", fast_first: bool = False,
) -> RunDir:  # fmt: skip
    """Write one run's directory into `folder`."""
    path = folder / f"{time}_{run_set}_{condition.baseline}_n{condition.trainers}_s{condition.seed}_{kind}"
    path.mkdir(parents=True)
    world = World(kind=kind, level=level)
    fingerprint, shared = run_fp(condition), condition_fp(condition)
    stored = {
        "condition": condition.model_dump(mode="json"), "world": world.model_dump(mode="json"), "run": path.name,
        "run_fp": fingerprint, "condition_fp": shared, "code": "0.1.0+0000", "libraries": LIBRARIES,
    }  # fmt: skip
    (path / "condition.json").write_bytes(orjson.dumps(stored))
    meta = RunMeta(
        fingerprint, shared, condition.seed, kind, condition.tier, condition.commit_order, condition.pacing,
        "init0", "data0", "0.1.0+0000", LIBRARIES, "cpu", [],
    )  # fmt: skip
    books = Books(path, world, meta, condition.nodes)
    model = Model(condition, kind, books, noise, fast_first)
    model.run()
    if kind == "sim":
        books.agg(model.now, StepTiming("loop", 0.5, {"tasks": model.accepts}))
    books.close()
    (path / "journal").mkdir()
    (path / "journal" / "aggregator-1.jsonl").write_bytes(b'{"header":{}}\n')
    virtual = model.now / SECOND
    wall = virtual / 50 if kind == "sim" else virtual + 0.01
    verdict = {
        "verdict": "COMPLETED", "reason": f"{model.at.cycle} cycles", "cycles": model.at.cycle, "commits": model.at.model_version,
        "accepts": model.accepts, "wall_s": wall, "virtual_s": virtual, "sim_rate": virtual / wall,
    }  # fmt: skip
    (path / "verdict.json").write_bytes(orjson.dumps(verdict))
    return RunDir(path)


def write_pair(
    folder: Path, condition: Condition, *, level: Level = "full", noise: tuple[int, int] | None = None, **kwargs: str
) -> RunPair:  # fmt: skip
    """A real and a sim run. noise: seeds of what differs (fidelity tier)."""
    real, sim = noise or (None, None)
    return RunPair(
        write_run(folder, condition, "real", noise=real, level=level, **kwargs),
        write_run(folder, condition, "sim", noise=sim, level=level, **kwargs),
    )
