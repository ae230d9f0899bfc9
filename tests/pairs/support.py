"""Running pairs in tests: a real run and its simulated twin, with somebody who does harm at a given cycle."""

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import psutil

import flame
from flame.config import Condition, World
from flame.launch.run import Run
from flame.launch.screen.ui import Quiet
from flame.telemetry.rundir import RunDir
from parity.engine import check, pair_of
from parity.rungs import LADDER

GATED: dict[str, Any] = {
    "baseline": "gated", "trainers": 6, "goal": 6, "concurrency": 6, "loop": "sync", "staleness": "exact", "perturb": "guided",
    "commit": [{"type": "variance", "threshold": 0.1}, {"type": "cap", "max": 3}], "payload": {"down": "once_per_version"},
    "delays": {"values": [0.15, 0.2, 0.2, 0.3]}, "stop": {"cycles": 10},
}  # fmt: skip

ASYNC: dict[str, Any] = {
    "baseline": "async", "trainers": 8, "goal": 3, "concurrency": 6, "loop": "async", "select": "random", "commit": ["agg_goal"],
    "delays": {"values": [0.15, 0.25, 0.25, 0.4]}, "payload": {"down": "once_per_version"}, "stop": {"cycles": 20},
}  # fmt: skip

WIDE: dict[str, Any] = {"features": 200, "samples": 64}
"""A toy whose weights are longer than a log of some commits."""

SCALARS: dict[str, Any] = ASYNC | {
    "baseline": "scalars", "toy": WIDE, "perturb": {"type": "mean_of", "probes": 4}, "payload": {"down": "replay", "up": "seeds"},
}  # fmt: skip
"""Weights once per trainer, and from then on no vector in either direction."""


def condition(shape: dict[str, Any], **changes: Any) -> Condition:
    """A condition of one of the shapes, with changes."""
    return Condition.model_validate(shape | changes)


@dataclass
class Harm(Quiet):
    """A Ui that calls `act(run directory)` once, when cycle `at` has closed; it remembers what it was told."""

    runs: Path
    at: int
    act: Callable[[Path], None]
    notes: list[str] = field(default_factory=list)
    done: bool = False

    def started(self, name: str, world: str) -> None:
        """The run's directory."""
        self.path = self.runs / name

    def closed(self, now_ns: int, wall_s: float, cycle: int, *rest: Any) -> None:
        """Harm is done at the cycle."""
        if cycle >= self.at and not self.done:
            self.done = True
            self.act(self.path)

    def noted(self, text: str) -> None:
        """Remember it."""
        self.notes.append(text)


def launched(path: Path) -> dict[str, int]:
    """Pids of the launcher's directory file: pid, group, broker."""
    plain: dict[str, int] = orjson.loads((path / "launcher.json").read_bytes())
    return plain


def members(path: Path) -> list[psutil.Process]:
    """Live processes of the run's group, the oldest first; the aggregator founded it."""
    group = launched(path)["group"]
    found = [process for process in psutil.process_iter() if _group(process) == group]
    return sorted(found, key=lambda process: process.create_time())


def _group(process: psutil.Process) -> int | None:
    try:
        return os.getpgid(process.pid) if process.status() != psutil.STATUS_ZOMBIE else None
    except (ProcessLookupError, psutil.NoSuchProcess):
        return None


def kill_worker(path: Path) -> None:
    """kill -9 to one worker."""
    os.kill(_worker(path), signal.SIGKILL)


def freeze_worker(path: Path) -> None:
    """One worker hangs: it lives, and is not heard any more."""
    os.kill(_worker(path), signal.SIGSTOP)


def _worker(path: Path) -> int:
    return next(process.pid for process in members(path) if process.pid != launched(path)["group"])


def kill_aggregator(path: Path) -> None:
    """kill -9 to the aggregator, which founded the group; one that is gone already is let be."""
    with suppress(ProcessLookupError):
        os.kill(launched(path)["group"], signal.SIGKILL)


def kill_broker(path: Path) -> None:
    """kill -9 to the broker."""
    os.kill(launched(path)["broker"], signal.SIGKILL)


def simulate(condition: Condition, runs: Path, **world: Any) -> Run:
    """The simulated twin."""
    return flame.run(condition, World.model_validate({"kind": "sim"} | world), runs=runs)


def run_for_real(condition: Condition, runs: Path, ui: Any = None, **world: Any) -> Run:
    """The real run."""
    return flame.run(condition, World.model_validate({"kind": "real"} | world), runs=runs, ui=ui)


def cycles(run: Run) -> list[tuple[Any, ...]]:
    """What must be equal in a pair, cycle by cycle: place, cohort with stamps, variance, reason, model and ledger digests."""
    columns = ["cycle", "round", "data_id", "iteration", "model_version", "cohort", "variance", "reason", "model", "state"]
    return run.frame("agg_round").select(columns).rows()


def released(run: Run) -> list[list[Any]]:
    """The sequence of released rows, from the aggregator's journal."""
    file = next(path for path in (run.path / "journal").iterdir() if path.name.startswith(("aggregator", "sim")))
    steps = [orjson.loads(line)["step"] for line in file.read_bytes().splitlines()[1:]]
    return [key for step in steps if step["node"] == "aggregator" for key in step["released"]]


def broken(real: Path, sim: Path) -> list[str]:
    """Ids of the ladder's rungs that fail over a pair. Not Lt: how late things are is the machine's matter, and its load's."""
    report = check(pair_of(RunDir(real), RunDir(sim)), LADDER)
    return [result.rung.id for result in report.results if result.verdict in ("FAIL", "ERROR") and result.rung.id != "Lt"]
