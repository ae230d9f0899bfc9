"""The run directory: what lies where, and which directories make a pair.

    runs/<UTC time>_<run-set>_<baseline>_n<N>_s<seed>_<real|sim>/
        condition.json   what was run: condition, world, fingerprints, library versions
        verdict.json     how it ended; a run without one is still going, or crashed
        checkpoint       what the run goes on from (`flame resume`)
        telemetry/       journal/   blobs/   logs/

Names are parsed as whole tokens, from both ends. A baseline may hold underscores and a run-set may
not, so the first token after the time is the run-set. What a run *is* stands in its condition.json;
the name only has to agree with it.
"""

import re
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

import orjson
from pydantic import TypeAdapter, ValidationError

from flame.config import Condition, World
from flame.telemetry.reader import Telemetry, TelemetryError

M = TypeVar("M")

_NAME = re.compile(r"(\d{8}T\d{6}(?:\d{0,6})Z)_([^_]+)_(.+)_n(\d+)_s(\d+)_(real|sim)")


class RunDirError(TelemetryError):
    """A directory that is no run, or that contradicts itself. str() names it and says why."""


@dataclass(frozen=True, slots=True)
class RunName:
    """The tokens of a run directory's name. time: UTC, sorts as text."""

    time: str
    run_set: str
    baseline: str
    trainers: int
    seed: int
    world: Literal["real", "sim"]

    @classmethod
    def parse(cls, name: str) -> Self | None:
        """The tokens of `name`, or None when it isn't exactly of that form."""
        match = _NAME.fullmatch(name)
        if match is None:
            return None
        time, run_set, baseline, trainers, seed, world = match.groups()
        return cls(time, run_set, baseline, int(trainers), int(seed), "real" if world == "real" else "sim")

    def __str__(self) -> str:
        return f"{self.time}_{self.run_set}_{self.baseline}_n{self.trainers}_s{self.seed}_{self.world}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """verdict.json. wall_s: wall seconds from ready to stop. virtual_s: the frontier, in seconds.

    Of a run whose aggregator died, all of it is up to the last close that was reported; accepts is None: nobody knows.
    """

    verdict: str
    reason: str
    cycles: int = 0
    commits: int = 0
    accepts: int | None = None
    wall_s: float = 0.0
    virtual_s: float = 0.0
    sim_rate: float | None = None


@dataclass(frozen=True, slots=True)
class Parent:
    """The run that another one forks off, as its directory is named, and the first cycle that may differ."""

    run: str
    cycle: int


_CONDITION, _WORLD, _VERDICT = TypeAdapter(Condition), TypeAdapter(World), TypeAdapter(Verdict)


class RunDir:
    """One run's directory, read lazily. Raises RunDirError when `path` has no condition.json."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stored = _load(path / "condition.json")

    def __repr__(self) -> str:
        return f"RunDir({str(self.path)!r})"

    @property
    def label(self) -> str:
        """The directory's own name."""
        return self.path.resolve().name

    @property
    def name(self) -> RunName | None:
        """The tokens of the directory's name; None for a run that was put elsewhere."""
        return RunName.parse(self.label)

    @cached_property
    def condition(self) -> Condition:
        """What was run."""
        return _validated(_CONDITION, self.path / "condition.json", self._field("condition"))

    @cached_property
    def world(self) -> World:
        """How it was carried out."""
        return _validated(_WORLD, self.path / "condition.json", self._field("world"))

    @property
    def run_fp(self) -> str:
        """Fingerprint of the whole condition: what pairs a real with a sim run."""
        return str(self._field("run_fp"))

    @property
    def condition_fp(self) -> str:
        """Fingerprint of the axes that compared baselines share."""
        return str(self._field("condition_fp"))

    @property
    def run(self) -> str:
        """The run's id, as its telemetry has it."""
        return str(self._field("run"))

    @property
    def parent(self) -> Parent | None:
        """Whose fork it is; None for a run of its own."""
        stored = self._stored.get("parent")
        return None if stored is None else Parent(**stored)

    @property
    def libraries(self) -> dict[str, str]:
        """Library versions, by name."""
        return {str(name): str(version) for name, version in self._field("libraries").items()}

    @property
    def verdict(self) -> Verdict | None:
        """How the run ended; None while it has not (or when it crashed without a word)."""
        path = self.path / "verdict.json"
        stored = _read(path)
        return None if stored is None else _validated(_VERDICT, path, _parsed(path, stored))

    @property
    def ended(self) -> bool:
        """Whether the run has a verdict."""
        return (self.path / "verdict.json").is_file()

    @cached_property
    def telemetry(self) -> Telemetry:
        """The records. Raises TelemetryError when there are none."""
        return Telemetry(self.path / "telemetry")

    @property
    def has_journal(self) -> bool:
        """Whether there is a journal to replay."""
        return any(file.is_file() for file in (self.path / "journal").glob("*"))

    def disagreement(self) -> str | None:
        """What the directory's name says that its condition doesn't; None when they agree or it has no such name."""
        name, condition = self.name, self.condition
        if name is None:
            return None
        told = {"baseline": name.baseline, "n": name.trainers, "s": name.seed, "world": name.world}
        true = {"baseline": condition.baseline, "n": condition.trainers, "s": condition.seed, "world": self.world.kind}
        wrong = [f"{key} `{told[key]}` (its condition: `{true[key]}`)" for key in told if told[key] != true[key]]
        return f"the name of `{self.label}` says {', '.join(wrong)}" if wrong else None

    def _field(self, key: str) -> Any:
        if key not in self._stored:
            raise RunDirError(f"`{self.path / 'condition.json'}` has no `{key}`")
        return self._stored[key]


@dataclass(frozen=True, slots=True)
class RunPair:
    """A real and a sim run of one condition."""

    real: RunDir
    sim: RunDir


def is_run(path: Path) -> bool:
    """Whether a run's condition lies there. What can't be looked into may be one: opening it says why it can't."""
    try:
        return (path / "condition.json").is_file()
    except OSError:
        return True


def survey(folder: Path) -> tuple[list[RunDir], list[str]]:
    """The runs in `folder` that ended other than by a crash, oldest first, and why the others were left out."""
    runs: list[RunDir] = []
    left_out: list[str] = []
    for path in sorted(folder.iterdir()) if folder.is_dir() else []:
        if path.is_dir() and RunName.parse(path.name):
            reason = _unusable(path)
            if reason is None:
                runs.append(RunDir(path))
            else:
                left_out.append(reason)
    return runs, left_out


def find_pairs(folder: Path) -> list[RunPair]:
    """The newest complete pair of each (run-set, baseline, n, seed) in `folder`: equal run_fp, both ended."""
    return pair_up(survey(folder)[0])


def pair_up(runs: list[RunDir]) -> list[RunPair]:
    """The newest pair of each (run-set, baseline, n, seed) among `runs`; of each world the newest run counts."""
    newest: dict[tuple[str, str, int, int], dict[str, dict[str, RunDir]]] = defaultdict(lambda: defaultdict(dict))
    for run in sorted(runs, key=_time):
        name = run.name
        key = (name.run_set if name else "", run.condition.baseline, run.condition.trainers, run.condition.seed)
        newest[key][run.run_fp][run.world.kind] = run
    pairs = [_newest_of(worlds) for _, worlds in sorted(newest.items())]
    return [pair for pair in pairs if pair is not None]


def _newest_of(by_fingerprint: dict[str, dict[str, RunDir]]) -> RunPair | None:
    complete = [RunPair(worlds["real"], worlds["sim"]) for worlds in by_fingerprint.values() if len(worlds) == 2]
    return max(complete, key=lambda pair: max(_time(pair.real), _time(pair.sim)), default=None)


def _time(run: RunDir) -> str:
    return run.name.time if run.name else ""


def _unusable(path: Path) -> str | None:
    """Why the directory can't be one half of a pair."""
    try:
        run = RunDir(path)
        verdict = run.verdict
        if verdict is None:
            return f"`{path.name}` has no verdict: still going, or crashed"
        if verdict.verdict == "CRASH":
            return f"`{path.name}` ended as CRASH: {verdict.reason}"
        return run.disagreement()
    except RunDirError as error:
        return str(error)


def _validated(model: TypeAdapter[M], path: Path, stored: Any) -> M:
    """`stored` as `model`, from JSON's types. Raises RunDirError that names the field."""
    try:
        return model.validate_json(orjson.dumps(stored))
    except ValidationError as error:
        fault = error.errors()[0]
        place = ".".join(str(part) for part in fault["loc"])
        raise RunDirError(f"`{path}`: `{place}`: {fault['msg']}") from None


def _load(path: Path) -> dict[str, Any]:
    stored = _read(path)
    if stored is None:
        raise RunDirError(f"`{path.parent}` is no run directory: it has no {path.name}")
    return _parsed(path, stored)


def _read(path: Path) -> bytes | None:
    """What the file holds, None where there is none. Raises RunDirError where it can't be read: it is somebody else's."""
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    except OSError as error:
        raise RunDirError(f"`{path}` can't be read: {error.strerror}") from None


def _parsed(path: Path, stored: bytes) -> dict[str, Any]:
    try:
        plain = orjson.loads(stored)
    except ValueError as error:
        raise RunDirError(f"`{path}` is corrupt: {error}") from None
    if not isinstance(plain, dict):
        raise RunDirError(f"`{path}` is no JSON object")
    return plain
