"""`flame replicate RUN`: the same condition again, in the same world, to know what runs differ by when nothing differs.

Replicates lie in a folder of their own beside the run, so that none of them is taken for half of its pair. A simulation
that draws latencies gets other draws each time; any other one would be the same again.
"""

from pathlib import Path

from flame.config.errors import ConfigError
from flame.config.experiments import Resolved
from flame.config.fingerprint import run_fp
from flame.config.world import World
from flame.launch import command
from flame.launch.preflight.plan import Plan
from flame.telemetry.rundir import RunDir, RunDirError

FOLDER = "replicates"


def replicate(run: Path, count: int, runs: Path | None, *, yes: bool, force: bool) -> int:
    """Pre-flight, then the runs. The exit code. Raises ConfigError for a run that can't be made again."""
    plan = plan_of(opened(run), count, runs or run.parent / FOLDER)
    return command.run(plan, dry_run=False, yes=yes, force=force, sweep=False)


def plan_of(run: RunDir, count: int, runs: Path) -> Plan:
    """The run, `count` times more."""
    if run.world.kind == "sim" and run.world.latency is None:
        raise ConfigError(
            f"`{run.label}` is a simulation without latencies: its replicates would be equal to it", "replicate the real run of its pair"
        )
    if run_fp(run.condition) != run.run_fp:
        raise ConfigError(
            f"`{run.label}` can't be made again: its fingerprint is {run.run_fp}, and what it names here makes {run_fp(run.condition)}",
            "give the files that its condition names the contents that they had, and call from the folder in which it was run",
        )
    name = run.name.run_set if run.name else "custom"
    return Plan(name, [Resolved(name, run.condition, {})], [_another(run.world, number) for number in range(1, count + 1)], runs)


def _another(world: World, number: int) -> World:
    return world.model_copy(update={"draw": world.draw + number}) if world.kind == "sim" else world


def opened(path: Path) -> RunDir:
    """The run at `path`. Raises ConfigError where there is none."""
    try:
        return RunDir(path)
    except RunDirError as error:
        raise ConfigError(str(error), "give one of `flame runs`") from None
