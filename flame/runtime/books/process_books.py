"""What every process of a run writes: its journal, its telemetry, and who it is; and the run's verdict.

condition.json   once, before anything starts
journal/<process>-<incarnation>.jsonl    telemetry/<process>-<incarnation>.jsonl
blobs/           shared by all
verdict.json     once, at the end, written aside and renamed
"""

import platform
from dataclasses import asdict, dataclass
from functools import cache
from hashlib import blake2b
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import orjson

import flame
from flame.config.condition import Condition
from flame.config.fingerprint import condition_fp, run_fp
from flame.config.world import World
from flame.core.messages import Presence
from flame.core.profile import Profile
from flame.core.time import in_seconds
from flame.learn.learner import Facts
from flame.roles.aggregator import Aggregator
from flame.runtime.books.blobs import Blobs
from flame.runtime.books.journal import Blank, Header, Journal, JournalPlace
from flame.telemetry.records import RunMeta
from flame.telemetry.rundir import Parent, Verdict
from flame.telemetry.writer import TelemetryPlace, Writer

LIBRARIES = ("torch", "numpy", "transformers", "pydantic", "paho-mqtt", "amqtt")


@dataclass(frozen=True, slots=True)
class Place:
    """How far the books of a process were written."""

    journal: JournalPlace
    telemetry: TelemetryPlace


@dataclass(slots=True)
class Books:
    """The journal and the telemetry of one process."""

    journal: Journal | Blank
    sink: Writer

    def place(self) -> Place:
        """How far they are written."""
        return Place(self.journal.place(), self.sink.place())

    def close(self) -> None:
        """Flush both."""
        self.journal.close()
        self.sink.close()


def open_books(
    run: Path, process: str, incarnation: str, condition: Condition, world: World, facts: Facts, nodes: list[str],
    place: Place | None = None,
) -> Books:  # fmt: skip
    """Open them, and write the process's RunMeta; or go on with them from `place`. Raises OSError where the disk refuses."""
    clock = "virtual" if world.kind == "sim" else "wall"
    name = f"{process}-{incarnation}.jsonl"
    sink = Writer(run / "telemetry" / name, run.name, incarnation, clock, world.level, place.telemetry if place else None)
    if place is None:
        sink.write(nodes[0], 0, None, _meta(condition, world, facts, nodes))
    blobs = Blobs(run / "blobs") if world.blobs == "all" and world.journal else None
    if not world.journal:
        return Books(Blank(place.journal.seq if place else 0), sink)
    if blobs is not None:
        blobs.put(facts.init)
    header = Header(
        run.name, incarnation, run_fp(condition), facts.init.digest, facts.bins, nodes, world.level, blobs is not None, facts.layout
    )
    journal = Journal(run / "journal" / name, header, blobs, buffered=world.kind == "sim", place=place.journal if place else None)
    return Books(journal, sink)


def _meta(condition: Condition, world: World, facts: Facts, nodes: list[str]) -> RunMeta:
    return RunMeta(
        run_fp(condition), condition_fp(condition), condition.seed, world.kind, condition.tier, condition.commit_order,
        condition.pacing, facts.init.digest, data_digest(facts), code_digest(), libraries(), facts.device, nodes,
    )  # fmt: skip


def presence(node: str, incarnation: str, profile: Profile, facts: Facts, code: str) -> Presence:
    """What `node` says of itself; the digests must be the aggregator's."""
    return Presence(node, incarnation, profile, facts.init.digest, data_digest(facts), code)


def data_digest(facts: Facts) -> str:
    """Data and frozen weights: what a process must share to compute the same bits."""
    return f"{facts.data}+{facts.model}"


@cache
def code_digest() -> str:
    """Version and a digest over the library's source."""
    root, hasher = Path(flame.__file__).parent, blake2b(digest_size=6)
    for path in sorted(root.rglob("*.py")):
        hasher.update(str(path.relative_to(root)).encode() + path.read_bytes())
    return f"{flame.__version__}+{hasher.hexdigest()}"


@cache
def libraries() -> dict[str, str]:
    """Versions of what the bits depend on."""
    found = {"python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def write_condition(run: Path, condition: Condition, world: World, parent: Parent | None = None) -> None:
    """Store what is run, before it is run. parent: whose fork it is."""
    plain = {
        "condition": condition.model_dump(mode="json"), "world": world.model_dump(mode="json"), "run": run.name,
        "run_fp": run_fp(condition), "condition_fp": condition_fp(condition), "code": code_digest(), "libraries": libraries(),
    } | ({"parent": asdict(parent)} if parent else {})  # fmt: skip
    write_aside(run / "condition.json", plain)


def verdict_of(aggregator: Aggregator, verdict: str, reason: str, wall_s: float) -> Verdict:
    """The verdict of a run whose aggregator is here."""
    at, virtual = aggregator.cycle.progress, in_seconds(aggregator.inbox.frontier)
    return Verdict(verdict, reason, at.cycle, at.model_version, aggregator.accepts, wall_s, virtual, virtual / wall_s if wall_s else None)


def write_verdict(run: Path, verdict: Verdict) -> None:
    """Once, whole."""
    write_aside(run / "verdict.json", asdict(verdict))


def write_aside(path: Path, plain: Any) -> None:
    """Write JSON aside and rename it, so that a reader sees all of it or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_suffix(".part")
    aside.write_bytes(orjson.dumps(plain, option=orjson.OPT_INDENT_2))
    aside.replace(path)
