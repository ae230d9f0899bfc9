"""Which runs of a folder have ended by themselves, and are the newest of their kind."""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

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


def newest(folder: Path, run_set: str, baseline: str | None = None, world: World = "sim") -> dict[tuple[str, int], RunDir]:
    """(baseline, seed) -> the newest run of a run-set."""
    found: dict[tuple[str, int], RunDir] = {}
    for run in ended(folder, world):
        name = run.name
        if name is not None and name.run_set == run_set.replace("_", "-") and baseline in (None, name.baseline):
            found[name.baseline, name.seed] = run
    return found


def by_fingerprint(folder: Path, world: World = "sim") -> dict[str, RunDir]:
    """run_fp -> the newest run of that condition."""
    return {run.run_fp: run for run in ended(folder, world)}
