"""Which runs of a folder have ended by themselves, and which of them are a run-set's own.

A directory's name says for which run-set it was made, not that it is what the run-set runs: a sweep, a flag and a fork
make runs of that name too. So a run-set's own runs are those of one condition, whatever the seed: the one that
experiments.yaml has for it; where that doesn't know the run-set, the one of its newest run. Forks are nobody's own.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from flame.config.condition import Condition
from flame.config.experiments import Experiments
from flame.config.fingerprint import condition_fp, seedless_fp
from flame.telemetry.reader import TelemetryError
from flame.telemetry.rundir import RunDir, RunName

CUT_SHORT = ("INTERRUPTED", "WALL_CEILING", "CRASH")
"""Verdicts of runs that something from outside ended."""

World = Literal["real", "sim"]


def ended(folder: Path, world: World | None = None) -> Iterator[RunDir]:
    """The runs in `folder` that weren't cut short, oldest first."""
    for path in sorted(folder.iterdir()) if folder.is_dir() else []:
        name = RunName.parse(path.name)
        if name is None or not path.is_dir() or (world is not None and name.world != world):
            continue
        try:
            run = RunDir(path)
            verdict = run.verdict
        except TelemetryError:
            continue
        if verdict is not None and verdict.verdict not in CUT_SHORT:
            yield run


def by_fingerprint(folder: Path, world: World = "sim") -> dict[str, RunDir]:
    """run_fp -> the newest run of that condition."""
    return {run.run_fp: run for run in ended(folder, world)}


def whole(run: RunDir) -> bool:
    """Whether it is nobody's fork, and its condition can be read."""
    try:
        run.condition  # noqa: B018
    except TelemetryError:
        return False
    return run.parent is None


@dataclass(frozen=True, slots=True)
class Own:
    """runs: (baseline, seed) -> the newest run. others: baseline -> the newest run of that name that isn't the run-set's own.

    written: baseline -> its condition in experiments.yaml.
    """

    runs: dict[tuple[str, int], RunDir]
    others: dict[str, RunDir]
    written: dict[str, Condition]


def own(folder: Path, run_set: str, registry: Experiments | None = None, world: World = "sim") -> Own:
    """What a run-set itself has run. registry: of experiments.yaml. Raises ConfigError where that can't be resolved."""
    token = run_set.replace("_", "-")
    named = [run for run in ended(folder, world) if run.name is not None and run.name.run_set == token and whole(run)]
    known = registry is not None and token in registry.run_sets
    written = {each.condition.baseline: each.condition for each in registry.resolve(token)} if registry is not None and known else {}
    wanted = {name: (condition_fp(condition), seedless_fp(condition)) for name, condition in written.items()}
    if not known:
        wanted = {run.condition.baseline: arm_of(run) for run in named}
    its = [run for run in named if wanted.get(run.condition.baseline) == arm_of(run)]
    others = {run.condition.baseline: run for run in named if run not in its}
    return Own({(run.condition.baseline, run.condition.seed): run for run in its}, others, written)


def arm_of(run: RunDir) -> tuple[str, str]:
    """Fingerprints that the seeds of one arm share: of the shared axes, with files as they were, and of all but the seed."""
    return run.condition_fp, seedless_fp(run.condition)
