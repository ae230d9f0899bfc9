"""`flame sweep`: every simulation of a sweep that isn't there yet, several at once, and one table of all.

What is there is known by its fingerprint: a simulation in the folder of runs that ended by its own rules is not run
again, one that was cut short goes on from its checkpoint. So a sweep may be interrupted as often as one likes.
"""

import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from time import monotonic, sleep

import orjson
from rich.console import Console

from flame.analysis import curve
from flame.analysis.finished import CUT_SHORT
from flame.config.condition import Condition
from flame.config.experiments import load
from flame.config.fingerprint import run_fp
from flame.config.sweeps import Point
from flame.config.world import World
from flame.launch.arm import Order
from flame.launch.folder.clean import trace
from flame.launch.folder.listing import run_paths
from flame.launch.folder.signals import told
from flame.launch.preflight import measure
from flame.launch.screen.consoles import table
from flame.runtime.checkpoint import NAME
from flame.telemetry.reader import TelemetryError
from flame.telemetry.rundir import RunDir

WELL, BAD = 0, 1
LOOK_S = 0.1
END_S = 60.0
"""How long a simulation may take to end in order, before it is killed."""


@dataclass(slots=True)
class Arm:
    """One simulation of a sweep. fingerprint: run_fp. done: its run, once it has ended. begun: a run to go on with."""

    point: Point
    run_set: str
    condition: Condition
    fingerprint: str
    done: RunDir | None = None
    begun: Path | None = None

    def __str__(self) -> str:
        fields = [f"{field}={value}" for field, value in self.point.items()]
        return " ".join([*fields, self.condition.baseline, f"seed {self.condition.seed}"])


def sweep(name: str, experiments: Path | None, runs: Path, jobs: int | None, out: Console, err: Console, *, dry_run: bool = False) -> int:
    """Run what is missing, print the table; the exit code is 1 when something still is. Raises ConfigError."""
    registry = load(experiments)
    arms = [Arm(point, each.run_set, each.condition, run_fp(each.condition)) for point, each in registry.swept(name)]
    find(arms, runs)
    waiting = [arm for arm in arms if arm.done is None]
    begun = sum(arm.begun is not None for arm in waiting)
    err.print(f"{len(arms)} simulations: {len(arms) - len(waiting)} are there, {begun} go on, {len(waiting) - begun} begin")
    if waiting and not dry_run:
        Crew(runs, err).carry_out(waiting, jobs or room())
        find(arms, runs)
    titles = ("point", "baseline", "n", "verdicts", "commits", "accuracy", "sustained", "worst")
    out.print(table(out, titles, list(rows(arms)), ("verdicts",), titles[4:]))
    return WELL if dry_run or all(arm.done for arm in arms) else BAD


def room() -> int:
    """How many simulations this machine holds at once."""
    here = measure.machine(1, broker=False)
    return max(1, min(here.cores, here.available // here.needed))


def find(arms: Sequence[Arm], runs: Path) -> None:
    """Set `done` and `begun` from what lies in the folder of runs; of several the newest."""
    wanted = {arm.fingerprint: arm for arm in arms}
    for path in run_paths(runs):
        try:
            run = RunDir(path)
            arm = wanted.get(run.run_fp) if run.world.kind == "sim" else None
            verdict = run.verdict
        except TelemetryError:
            continue
        if arm is None:
            continue
        if verdict is not None and verdict.verdict not in CUT_SHORT:
            arm.done = run
        elif (path / NAME).exists() and not trace(path).going:
            arm.begun = path


class Crew:
    """Simulations in processes of their own, so many at once."""

    def __init__(self, runs: Path, err: Console) -> None:
        self._runs, self._err = runs, err
        self._at_work: dict[subprocess.Popen[bytes], Arm] = {}
        self._until: float | None = None

    def carry_out(self, arms: Sequence[Arm], at_once: int) -> None:
        """All of them; after Ctrl-C those at work end in order, and nothing new begins."""
        waiting, ended = list(arms), 0
        with told(self._stop):
            while self._at_work or (waiting and self._until is None):
                while waiting and len(self._at_work) < at_once and self._until is None:
                    self._start(waiting.pop(0))
                if self._until is not None and monotonic() > self._until:
                    for process in self._at_work:
                        process.kill()
                for process in [each for each in self._at_work if each.poll() is not None]:
                    ended += 1
                    arm = self._at_work.pop(process)
                    how = f": exit {process.returncode}" if process.returncode else ""
                    self._err.print(f"[{ended}/{len(arms)}] {arm}{how}", markup=False, soft_wrap=True)
                sleep(LOOK_S)

    def _start(self, arm: Arm) -> None:
        world = World(kind="sim")
        order = Order(
            arm.condition.model_dump_json(), world.model_dump_json(), arm.run_set, str(self._runs), str(arm.begun) if arm.begun else None
        )
        line = orjson.dumps(asdict(order), option=orjson.OPT_APPEND_NEWLINE)
        process = subprocess.Popen([sys.executable, "-m", "flame.launch.arm"], stdin=subprocess.PIPE, start_new_session=True)
        self._at_work[process] = arm
        if process.stdin is not None:
            process.stdin.write(line)
            process.stdin.flush()

    def _stop(self, signal: str) -> None:
        self._until = monotonic() + END_S
        self._err.print(f"{signal}: {len(self._at_work)} simulations end in order; run the sweep again to go on", markup=False)
        for process in self._at_work:
            if process.stdin is not None:
                process.stdin.close()


# ---- the table


def rows(arms: Sequence[Arm]) -> Iterator[list[str]]:
    """One row for each point and baseline, over its seeds; `worst`: sustained accuracy of the worst seed."""
    groups: dict[tuple[str, str], list[Arm]] = defaultdict(list)
    for arm in arms:
        groups[" ".join(f"{field}={value}" for field, value in arm.point.items()), arm.condition.baseline].append(arm)
    for (point, baseline), group in groups.items():
        ended = [arm.done for arm in group if arm.done is not None]
        verdicts = Counter(run.verdict.verdict for run in ended if run.verdict)
        commits = [run.verdict.commits for run in ended if run.verdict]
        scores = [each for run in ended if (each := scored(run)) is not None]
        last, sustained = ([score[which] for score in scores] for which in (0, 1))
        yield [
            point, baseline, f"{len(ended)}/{len(group)}", " ".join(f"{count} {name}" for name, count in verdicts.items()) or "-",
            f"{fmean(commits):.0f}" if commits else "-", _mean(last), _mean(sustained), f"{min(sustained):.3f}" if sustained else "-",
        ]  # fmt: skip


def scored(run: RunDir) -> tuple[float, float] | None:
    """The last accuracy of a run, and the sustained one; None where either is absent, or its telemetry is."""
    try:
        evaluations = run.telemetry.frame("agg_eval").sort("_seq")
    except TelemetryError:
        return None
    last, lasting = curve.last(evaluations), curve.sustained(evaluations)
    return None if last is None or lasting is None else (last, lasting)


def _mean(values: Sequence[float]) -> str:
    return f"{fmean(values):.3f}" if values else "-"
