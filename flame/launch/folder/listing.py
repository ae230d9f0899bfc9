"""`flame runs` and `flame status`: what lies in the folder of runs, and what is still alive of it.

A run without a verdict is GOING while somebody conducts it, and a CRASH otherwise. One that can't be read, because it is
corrupt or somebody else's, is UNREADABLE, and no reason not to show the others.
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from rich.console import Console
from rich.text import Text

from flame.config.errors import ConfigError
from flame.launch.folder.clean import Trace, trace
from flame.launch.screen.consoles import table
from flame.launch.screen.progress import GOOD, span
from flame.telemetry.rundir import RunDir, RunDirError, RunName

WELL, BAD = 0, 1
VERDICTS = (
    "COMPLETED", "CONVERGED", "STALLED", "DID_NOT_CONVERGE", "WALL_CEILING", "CRASH", "INTERRUPTED", "STARVED", "DIVERGED", "GOING",
    "UNREADABLE",
)  # fmt: skip
"""What a run can be; the last but one while it is, the last one where nobody knows."""


def show_runs(runs: Path, console: Console, only: Sequence[str] = (), verdicts: Sequence[str] = (), *, sizes: bool = False) -> None:
    """Runs, oldest first. only: texts that are in their names. verdicts: how they may have ended. sizes: what they take of the disk."""
    paths = [path for path in run_paths(runs) if all(text in path.name for text in only)]
    paths = [path for path in paths if not verdicts or verdict_of(path) in verdicts]
    if not paths:
        console.print(f"no {'such ' if only or verdicts else ''}runs in {runs}", markup=False)
        return
    titles = ("run", "verdict", "cycles", "wall", "virtual", "run_fp", *(["size"] if sizes else []))
    rows = [[*_row(path), *([sized(size_of(path))] if sizes else [])] for path in paths]
    console.print(table(console, titles, rows, ("cycles", "virtual", "wall"), ("cycles", "wall", "virtual", "size")))
    if sizes:
        console.print(f"{len(paths)} runs, {sized(sum(map(size_of, paths)))}")


def size_of(path: Path) -> int:
    """Bytes of the files below a directory, as far as they can be seen."""
    size = 0
    for folder, _, names in os.walk(path):
        for name in names:
            with suppress(OSError):
                size += os.lstat(os.path.join(folder, name)).st_size
    return size


def sized(size: int) -> str:
    """`1.2 MiB`."""
    power = min(3, max(0, size.bit_length() - 1) // 10)
    return f"{size / (1 << 10 * power):.{1 if power else 0}f} {('B', 'KiB', 'MiB', 'GiB')[power]}"


def show_status(runs: Path, console: Console) -> int:
    """Runs that are going, that crashed, can't be read, or left processes behind. The exit code: 1 when there is a stray."""
    found = [(path, verdict_of(path), trace(path)) for path in run_paths(runs)]
    for path, verdict, alive in found:
        if verdict in ("GOING", "CRASH", "UNREADABLE") or alive.stray:
            told = _alive(alive) or (f"  {_fault(path)}" if verdict == "UNREADABLE" else "")
            console.print(Text(f"{path.name}  ").append(_style(verdict)).append(told), soft_wrap=True)
    if not any(verdict == "GOING" for _, verdict, _ in found):
        console.print(f"nothing is going on in {runs}", markup=False)
    return BAD if any(alive.stray for _, _, alive in found) else WELL


def run_paths(runs: Path) -> list[Path]:
    """Directories that are named like runs, oldest first. Raises ConfigError for a folder that can't be read."""
    try:
        return [path for path in sorted(runs.iterdir()) if path.is_dir() and RunName.parse(path.name)] if runs.is_dir() else []
    except OSError as error:
        raise ConfigError(f"`{runs}` can't be read: {error.strerror}", "give another folder: `--runs DIR`") from None


def verdict_of(path: Path) -> str:
    """The stored verdict, or what its absence means."""
    if _fault(path) is not None:
        return "UNREADABLE"
    stored = RunDir(path).verdict
    if stored is not None:
        return stored.verdict
    return "GOING" if trace(path).going else "CRASH"


def _fault(path: Path) -> str | None:
    """Why a run can't be read."""
    try:
        _ = RunDir(path).verdict
    except RunDirError as error:
        return str(error)
    return None


def _row(path: Path) -> list[Text | str]:
    verdict = verdict_of(path)
    try:
        run = RunDir(path)
        stored, fingerprint = run.verdict, run.run_fp
    except RunDirError:
        return [path.name, _style(verdict), *["-"] * 4]
    if stored is None:
        return [path.name, _style(verdict), *["-"] * 3, fingerprint]
    return [path.name, _style(verdict), str(stored.cycles), span(stored.wall_s), span(stored.virtual_s), fingerprint]


def _style(verdict: str) -> Text:
    return Text(verdict, "green" if verdict in GOOD else "cyan" if verdict == "GOING" else "bold red")


def _alive(alive: Trace) -> str:
    if alive.going:
        return f"  launcher {alive.launcher}, {len(alive.others)} more processes"
    return f"  left behind: {', '.join(map(str, alive.others))} (flame run ... --clean ends them)" if alive.others else ""
