"""`flame stop RUN`: ask a run to end, and see it out.

A run that is conducted ends in order, as INTERRUPTED. Of one whose launcher is gone, what is left of its processes is
ended. Nothing of another run is touched.
"""

from pathlib import Path
from time import monotonic, sleep

from rich.console import Console

from flame.config.errors import ConfigError, unknown
from flame.launch.folder.asking import ask
from flame.launch.folder.clean import clean, trace
from flame.launch.folder.listing import run_paths, verdict_of
from flame.telemetry.rundir import is_run

WELL, BAD = 0, 1
LOOK_S = 0.1
PATIENCE_S = 60.0
"""The aggregator's ten seconds, the workers' ten, their group's three and three; and a busy machine."""


def stop_run(name: str, runs: Path, out: Console, patience: float = PATIENCE_S) -> int:
    """Ask, wait, and say how it ended; 1 when it goes on. Raises ConfigError where there is nothing to stop."""
    path = named(name, runs)
    alive = trace(path)
    if alive.stray:
        left = clean([alive])
        out.print(
            f"{path.name} has no launcher any more; {len(alive.others) - len(left)} processes were ended", markup=False, soft_wrap=True
        )
        return BAD if left else WELL
    if not alive.going:
        raise ConfigError(f"`{path.name}` isn't going: {verdict_of(path)}", "`flame status` shows what goes on")
    ask(path, "asked by `flame stop`")
    if not _ended(path, patience):
        out.print(
            f"{path.name} has been asked, and goes on after {patience:.0f} s (launcher {alive.launcher})", markup=False, soft_wrap=True
        )
        return BAD
    out.print(f"{path.name}  {verdict_of(path)}", markup=False, soft_wrap=True)
    return WELL


def named(name: str, runs: Path) -> Path:
    """The run of that path, name, or beginning of a name, in the folder `runs`. Raises ConfigError for none, and for several."""
    for path in (Path(name), runs / name):
        if is_run(path):
            return path
    found = [path for path in run_paths(runs) if path.name.startswith(name)]
    if len(found) > 1:
        raise ConfigError(f"`{name}` begins the names of {len(found)} runs in `{runs}`", f"give more of it, such as `{found[-1].name}`")
    if not found:
        raise unknown("run", name, [path.name for path in run_paths(runs)][-5:], f" in `{runs}`")
    return found[0]


def _ended(path: Path, patience: float) -> bool:
    """Whether its verdict is there and its processes are gone, within `patience` seconds."""
    until = monotonic() + patience
    while monotonic() < until:
        if (path / "verdict.json").is_file() and not trace(path).others:
            return True
        sleep(LOOK_S)
    return False
