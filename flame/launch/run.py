"""One run, from its condition to its directory: the same steps for both worlds, and the two ends that differ.

`flame.run(condition, "sim")` needs no broker. A run directory exists only for what has been started; it says how
that ended, whatever happened.
"""

import os
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path
from time import monotonic
from traceback import format_exception
from typing import Any

import orjson

from flame.config.condition import Condition
from flame.config.devices import profiles
from flame.config.world import World
from flame.core.events import StopAsked
from flame.core.time import in_seconds
from flame.launch.folder.asking import Asked, listening
from flame.launch.preflight.measure import placed
from flame.launch.preflight.placement import report
from flame.launch.processes.fleet import Fleet, StartError
from flame.launch.processes.hosting import Spec
from flame.launch.processes.watch import Seen, Watch
from flame.launch.screen.ui import Quiet, Ui
from flame.learn.device import visible
from flame.learn.learner import Facts, Learner, build
from flame.roles.aggregator import Aggregator
from flame.roles.trainer import Trainer
from flame.runtime.aggregator_side import Standing
from flame.runtime.books.checkpoint import Checkpoint, keeper
from flame.runtime.books.process_books import Books, code_digest, open_books, verdict_of, write_aside, write_condition, write_verdict
from flame.runtime.books.rewind import rewind
from flame.runtime.brokers.broker import BrokerError, open_broker
from flame.runtime.compute.executors import Executor, Inline, Pool
from flame.runtime.compute.latency import latency_of
from flame.runtime.compute.meter import Meter
from flame.runtime.sim import Simulation, State
from flame.runtime.transport.access import Access
from flame.telemetry.reader import Telemetry, compact
from flame.telemetry.records import AggEval, AggRound, Record, StepTiming
from flame.telemetry.rundir import Parent, Verdict

SAMPLE_S = 0.25
"""Wall seconds between two looks at what a simulation takes of its machine."""


@dataclass(frozen=True)
class Run:
    """A run that has ended: where it is and how it went."""

    path: Path
    verdict: str
    reason: str
    cycles: int
    commits: int
    accepts: int | None
    wall_s: float
    virtual_s: float
    sim_rate: float | None

    @cached_property
    def _telemetry(self) -> Any:
        return Telemetry(self.path / "telemetry")

    def frame(self, kind: str) -> Any:
        """The telemetry records of one kind, such as `agg_round`, as a polars frame."""
        return self._telemetry.frame(kind)


def run(
    condition: Condition, world: World | str = "sim", *,
    run_set: str = "custom", runs: Path | str = "runs", ui: Ui | None = None, parent: Parent | None = None,
) -> Run:  # fmt: skip
    """Run `condition` in one world, and return when it has ended. parent: whose fork it is.

    Raises ConfigError when data, model, a latency law or a password is missing, before a directory is made. A run that ends badly
    doesn't raise: its verdict says so.
    """
    world = World.model_validate({"kind": world}) if isinstance(world, str) else world
    ui = ui or Quiet()
    latency_of(world)
    Access.of(world)
    learner = build(condition, prefix_cache=world.prefix_cache, device=world.device)
    learner.warm()
    with listening() as asked:
        path = make_directory(Path(runs), run_set, condition, world, parent)
        asked.within(path)
        ui.started(path.name, world.kind)
        simulated = world.kind == "sim"
        verdict = _simulate(path, condition, world, learner, ui, asked) if simulated else _run_for_real(path, condition, world, ui, asked)
        return _ended(path, verdict, ui)


def resume(path: Path, condition: Condition, world: World, ui: Ui | None = None) -> Run:
    """Go on with a run that was cut short, from its last checkpoint. In a simulation what follows is what would have followed.

    Raises NoCheckpoint where there is none for this code, ConfigError when data or model is missing.
    """
    ui, checkpoint = ui or Quiet(), Checkpoint.read(path)
    learner = build(condition, prefix_cache=world.prefix_cache, device=world.device)
    learner.warm()
    with listening() as asked:
        (path / "verdict.json").unlink(missing_ok=True)
        write_aside(path / "launcher.json", {"pid": os.getpid()})
        asked.within(path)
        ui.started(path.name, world.kind)
        if world.kind == "sim":
            return _ended(path, _simulate(path, condition, world, learner, ui, asked, checkpoint), ui)
        standing: Standing = checkpoint.state
        lives = rewind(path, standing.pending.now, standing.dispatches.newest)
        return _ended(path, _run_for_real(path, condition, world, ui, asked, lives), ui)


def _ended(path: Path, verdict: Verdict, ui: Ui) -> Run:
    if verdict.verdict != "CRASH":
        compact(path)
    ui.ended(verdict.verdict, verdict.reason)
    return Run(path, *(getattr(verdict, name) for name in Verdict.__dataclass_fields__))


def make_directory(runs: Path, run_set: str, condition: Condition, world: World, parent: Parent | None = None) -> Path:
    """A new run directory with its condition and the launcher's pid."""
    rest = f"{run_set.replace('_', '-')}_{condition.baseline}_n{condition.trainers}_s{condition.seed}_{world.kind}"
    while True:
        path = runs / f"{datetime.now(UTC):%Y%m%dT%H%M%S%f}Z_{rest}"
        try:
            path.mkdir(parents=True)
            break
        except FileExistsError:
            continue
    write_condition(path, condition, world, parent)
    write_aside(path / "launcher.json", {"pid": os.getpid()})
    return path


# ---- simulated


def _simulate(
    path: Path, condition: Condition, world: World, learner: Learner, ui: Ui, asked: Asked, checkpoint: Checkpoint | None = None
) -> Verdict:
    place = checkpoint.place if checkpoint else None
    books = open_books(path, "sim", "1", condition, world, learner.facts, ["aggregator", *condition.nodes], place)
    try:
        watcher = _Watcher(ui, condition.stop.wall_s, asked)
        verdict = _simulated(path, books, condition, world, learner, watcher, checkpoint.state if checkpoint else None)
    except Exception as error:  # the run is over, and its directory must say why
        (path / "logs").mkdir(exist_ok=True)
        (path / "logs" / "sim.log").write_text("".join(format_exception(error)))
        verdict = Verdict("CRASH", f"{type(error).__name__}: {error}")
    finally:
        books.close()
    write_verdict(path, verdict)
    return verdict


def _simulated(
    path: Path, books: Books, condition: Condition, world: World, learner: Learner, watcher: "_Watcher", kept: State | None
) -> Verdict:
    aggregator, trainers = (kept.aggregator, kept.trainers) if kept else _machines(condition, world, learner.facts)
    with closing(_executor(condition, world, learner)) as executor:
        simulation = Simulation(
            aggregator, trainers, executor, books.journal, books.sink,
            watcher=watcher, keep=keeper(path, books, world), latency=latency_of(world), wire_roundtrip=world.wire == "roundtrip",
        )  # fmt: skip
        outcome = simulation.resume(kept) if kept else simulation.run()
        counts = executor.counts()
    records: list[Record | None] = [
        StepTiming("join", outcome.joined_s),
        StepTiming("loop", outcome.wall_s, counts),
        watcher.meter.report(),
    ]
    for record in [each for each in records if each is not None]:
        books.sink.write("aggregator", outcome.now, None, record)
    return verdict_of(aggregator, outcome.verdict, outcome.reason, outcome.wall_s)


def _machines(condition: Condition, world: World, facts: Facts) -> tuple[Aggregator, dict[str, Trainer]]:
    aggregator = Aggregator(condition, facts.init, facts.bins, world.level, facts.layout)
    return aggregator, {node: Trainer(condition, profile, world.level, facts.layout) for node, profile in profiles(condition).items()}


def _executor(condition: Condition, world: World, learner: Learner) -> Executor:
    return (
        Pool(partial(build, condition, prefix_cache=world.prefix_cache, device=world.device), world.pool) if world.pool else Inline(learner)
    )


class _Watcher:
    """Between a simulation and the person: progress out; what was asked, and the ceiling of wall time, in."""

    def __init__(self, ui: Ui, wall_s: float | None, asked: Asked) -> None:
        self._ui, self._asked = ui, asked
        self._ceiling = monotonic() + wall_s if wall_s is not None else None
        self._sampled = 0.0
        self.meter = Meter()

    def saw(self, now: int, record: AggRound | AggEval) -> None:
        """A cycle has closed, or an evaluation was released."""
        if isinstance(record, AggEval):
            self._ui.scored(record.accuracy, record.loss)
            return
        at, now_s = record.at, monotonic()
        if now_s - self._sampled >= SAMPLE_S:
            self._sampled = now_s
            self.meter.sample()
        version = at.model_version + record.committed
        self._ui.closed(now, record.wall_s or 0.0, at.cycle + 1, at.round, at.data_id, at.iteration, version, record.in_flight)

    def stop_asked(self) -> StopAsked | None:
        """What was asked for, or the ceiling, once."""
        if self._ceiling is not None and monotonic() > self._ceiling:
            self._ceiling = None
            return StopAsked("the ceiling of wall time was reached", "WALL_CEILING")
        why = self._asked.why
        return None if why is None else StopAsked(why, "INTERRUPTED")


# ---- for real


def _run_for_real(path: Path, condition: Condition, world: World, ui: Ui, asked: Asked, lives: int = 0) -> Verdict:
    """lives: that its workers had before, where it goes on from its checkpoint."""
    fleet: Fleet | None = None
    broker = open_broker(world.broker, path / "broker", condition.limits, group=0, access=Access.of(world))
    try:
        broker.start(condition.limits.ready_wait_s)
        seats, _ = placed(condition, world)
        fleet = Fleet(Spec(path, condition, world, broker.host, broker.port, 0, code_digest(), dict(os.environ), lives, seats))
        fleet.start()
        for line in report(seats, visible() if world.device != "cpu" else ()):
            ui.noted(line)
        write_aside(path / "launcher.json", {"pid": os.getpid(), "group": fleet.group, "broker": broker.pid})
        seen = Watch(fleet, broker, path, condition, ui, asked).until_end()
    except (BrokerError, StartError) as error:
        seen = Seen("CRASH", str(error), None)
    finally:
        if fleet is not None:
            fleet.tear_down()
        broker.stop()
    return _verdict(path, seen)


def _verdict(path: Path, seen: Seen) -> Verdict:
    """What the aggregator wrote; if it couldn't, what was seen from outside."""
    file, last = path / "verdict.json", seen.last
    if file.exists():
        return Verdict(**orjson.loads(file.read_bytes()))
    until = in_seconds(last.now) if last else 0.0
    verdict = Verdict(seen.verdict, seen.reason, last.cycle if last else 0, last.version if last else 0, None, until, until)
    write_verdict(path, verdict)
    return verdict
