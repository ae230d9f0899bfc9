"""`flame resume`: go on with a run that was cut short."""

from pathlib import Path

from rich.console import Console

from flame.analysis.finished import CUT_SHORT
from flame.config.errors import ConfigError
from flame.config.outside import changed
from flame.launch.folder.clean import trace
from flame.launch.run import resume
from flame.launch.screen.progress import GOOD, progress
from flame.runtime.books.checkpoint import NoCheckpoint
from flame.telemetry.reader import TelemetryError
from flame.telemetry.rundir import RunDir

AGAIN = "run its condition again: `flame run`"
WELL, BAD = 0, 1


def resume_run(path: Path, err: Console) -> int:
    """Go on from the last checkpoint to the end; the exit code. Raises ConfigError where there is nothing to go on with."""
    try:
        run = RunDir(path)
        condition, world, verdict = run.condition, run.world, run.verdict
    except TelemetryError as error:
        raise ConfigError(f"`{path}` can't be resumed: {error}", "give a run directory, one of `flame runs`") from None
    left = trace(path)
    if left.going:
        raise ConfigError(f"`{path.name}` is still running", "wait for its end; `flame status` shows it")
    if left.stray:
        raise ConfigError(
            f"processes of `{path.name}` are still there: {', '.join(map(str, left.others))}", "end them: `flame run --clean`"
        )
    if verdict is not None and verdict.verdict not in CUT_SHORT:
        raise ConfigError(f"`{path.name}` has ended: {verdict.verdict}", "nothing is left to be done")
    for policy, _ in changed(condition):
        raise ConfigError(f"`{path.name}` can't be resumed: the source of `{policy.type}` has changed", AGAIN)
    shown = progress(condition.stop, err)
    try:
        ended = resume(path, condition, world, shown)
    except NoCheckpoint as error:
        raise ConfigError(f"`{path.name}` can't be resumed: {error}", AGAIN) from None
    finally:
        shown.close()
    return WELL if ended.verdict in GOOD else BAD
