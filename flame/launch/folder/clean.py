"""Strays: processes that an earlier run left behind, found by what its directory recorded.

`launcher.json` of a run holds the launcher's pid, the process group of its children, and its broker's
pid. A number can have been given to somebody else since, so a process counts only if it is older than
the record (or is a fork server's child, which respawned workers are).

    the launcher lives                    the run is its to end: going, as long as it has no verdict
    it is gone, others of the run live    strays: refuse to start on top of them, or `--clean`
"""

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import orjson
import psutil

GRACE_S = 3.0
SLACK_S = 1.0
"""A process table counts in ticks, a file's time in nanoseconds."""


@dataclass(frozen=True, slots=True)
class Trace:
    """What is alive of a run. launcher: its pid, if it lives. others: pids of children and broker that live."""

    run: Path
    launcher: int | None
    others: tuple[int, ...]

    @property
    def going(self) -> bool:
        """Whether somebody still conducts this run."""
        return self.launcher is not None and not (self.run / "verdict.json").exists()

    @property
    def stray(self) -> bool:
        """Whether it left processes behind."""
        return self.launcher is None and bool(self.others)


def traces(runs: Path) -> list[Trace]:
    """Every run in the folder `runs` of which something is alive, but those of this process."""
    records = [record for record in sorted(runs.glob("*/launcher.json")) if record.is_file()]
    if not records:
        return []
    groups = _groups()
    found = [trace(record.parent, groups) for record in records]
    return [each for each in found if each.launcher != os.getpid() and (each.going or each.stray)]


def trace(run: Path, groups: dict[int, list[int]] | None = None) -> Trace:
    """What is alive of one run. groups: pids by process group, when they are known."""
    record = run / "launcher.json"
    try:
        stored, written = orjson.loads(record.read_bytes()), record.stat().st_mtime
    except (OSError, ValueError):
        return Trace(run, None, ())
    launcher, group, broker = (stored.get(key) or 0 for key in ("pid", "group", "broker"))
    members = (_groups() if groups is None else groups).get(group, []) if group else []
    others = [pid for pid in {*members, *([broker] if broker else [])} if _is_ours(pid, written)]
    return Trace(run, launcher if _is_ours(launcher, written, child=False) else None, tuple(sorted(others)))


def clean(found: Sequence[Trace]) -> list[int]:
    """End the strays among `found`: TERM, a grace, KILL. Returns the pids that are left."""
    processes = [process for each in found if each.stray for process in _processes(each.others)]
    for signum in (signal.SIGTERM, signal.SIGKILL):
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signum)
        _, processes = psutil.wait_procs(processes, timeout=GRACE_S)
    return [process.pid for process in processes]


def _groups() -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for pid in psutil.pids():
        with suppress(ProcessLookupError, PermissionError):
            found.setdefault(os.getpgid(pid), []).append(pid)
    return found


def _is_ours(pid: int, written: float, *, child: bool = True) -> bool:
    """Whether the live process `pid` is the one that was recorded at `written`."""
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE or pid == 0:
            return False
        return process.create_time() <= written + SLACK_S or (child and any("forkserver" in part for part in process.cmdline()))
    except psutil.Error:
        return False


def _processes(pids: Sequence[int]) -> Iterator[psutil.Process]:
    for pid in pids:
        with suppress(psutil.NoSuchProcess):
            yield psutil.Process(pid)
