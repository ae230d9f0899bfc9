"""The simulations of a sweep, and what is there of each: known by fingerprint, whoever made it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from flame.analysis.finished import CUT_SHORT
from flame.config.condition import Condition
from flame.config.experiments import Resolved
from flame.config.fingerprint import run_fp
from flame.config.sweeps import Point, worded
from flame.launch.folder.clean import trace
from flame.launch.folder.listing import run_paths
from flame.launch.screen.progress import GOOD
from flame.runtime.books.checkpoint import NAME
from flame.telemetry.reader import TelemetryError
from flame.telemetry.rundir import RunDir


@dataclass(slots=True)
class Arm:
    """One simulation of a sweep. done: its run, once it has ended by itself. begun: a run to go on with. last: how its newest run ended.

    going: somebody conducts it now, in another process.
    """

    point: Point
    resolved: Resolved
    done: RunDir | None = None
    begun: Path | None = None
    last: str | None = None
    going: bool = False

    @property
    def condition(self) -> Condition:
        """What is run."""
        return self.resolved.condition

    @property
    def well(self) -> bool:
        """Whether it is there, and ended as it should."""
        return self.done is not None and self.last in GOOD

    @property
    def free(self) -> bool:
        """Whether it is missing, and nobody is at it."""
        return self.done is None and not self.going

    @property
    def place(self) -> str:
        """Its point, as `a.b=1 c=2`."""
        return worded(self.point)

    def __str__(self) -> str:
        return f"{self.place} {self.condition.baseline} seed {self.condition.seed}"


def find(arms: Sequence[Arm], runs: Path) -> None:
    """Set `done`, `begun`, `last` and `going` from what lies in the folder of runs; of several the newest."""
    for each in arms:
        each.done, each.begun, each.last, each.going = None, None, None, False
    wanted = {run_fp(arm.condition): arm for arm in arms}
    for path in run_paths(runs):
        try:
            run = RunDir(path)
            arm = wanted.get(run.run_fp) if run.world.kind == "sim" else None
            verdict = run.verdict
        except TelemetryError:
            continue
        if arm is None:
            continue
        ended = verdict is not None and verdict.verdict not in CUT_SHORT
        if verdict is not None and (ended or arm.done is None):
            arm.last = verdict.verdict
        if ended:
            arm.done = run
        elif trace(path).going:
            arm.going = True
        elif (path / NAME).exists():
            arm.begun = path
