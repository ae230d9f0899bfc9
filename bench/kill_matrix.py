"""Who may be killed when, and what is left: `python -m bench.kill_matrix [-n N] [--blow NAME] [--moment NAME]`.

A short real run of the toy is struck by a blow at a moment, N times each:

    blows      Ctrl-C (to the launcher's group), TERM and KILL of the launcher, KILL of aggregator, worker, broker
    moments    start (the run directory is there; of the run's processes: they are), middle (cycles have closed),
               end (the verdict is written; of a worker, which leaves before that: the last cycle has closed)

Asked of each: no process is left 15 s after the launcher has ended, telemetry can be read, `flame status` gives a right
verdict and finds no stray. Processes are found by a mark in their environment, so none is missed that was adopted.
"""

import argparse
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic, sleep
from uuid import uuid4

import orjson
import psutil

from flame.launch.folder.listing import verdict_of
from flame.telemetry.reader import TelemetryError
from flame.telemetry.rundir import RunDir

MARK = "FLAME_KILL_MATRIX"
CLEAN_S = 15.0
"""How long processes may stay when the launcher is gone."""
PATIENCE_S = 180.0
"""For a moment to come, and for a launcher that goes on to end: a busy machine."""
CYCLES, CLOSED = 24, 4
"""Of a whole run, and before its middle."""
MOMENTS = ("start", "middle", "end")


@dataclass(frozen=True, slots=True)
class Blow:
    """One way to strike. whom: the process. sent: the signal."""

    whom: str
    sent: signal.Signals

    def __str__(self) -> str:
        return "ctrl-c" if self.whom == "group" else f"{self.sent.name[3:]} {self.whom}"


BLOWS = (
    Blow("group", signal.SIGINT), Blow("launcher", signal.SIGTERM), Blow("launcher", signal.SIGKILL),
    Blow("aggregator", signal.SIGKILL), Blow("worker", signal.SIGKILL), Blow("broker", signal.SIGKILL),
)  # fmt: skip


def right(blow: Blow, moment: str) -> set[str]:
    """The verdicts that are right."""
    if moment == "end":
        return {"COMPLETED"}
    if blow.whom in ("worker", "broker"):
        return {"COMPLETED"} if moment == "middle" else {"COMPLETED", "CRASH"}
    if blow.whom == "aggregator":
        return {"CRASH"}
    return {"INTERRUPTED", "CRASH"} if blow.sent == signal.SIGKILL and moment == "start" else {"INTERRUPTED"}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one blow. missed: whom it was for was gone already. gone_s: from the launcher's end to that of the last process."""

    blow: Blow
    moment: str
    missed: bool
    verdict: str
    left: tuple[str, ...]
    gone_s: float
    closes: int | None
    unreadable: str

    @property
    def faults(self) -> list[str]:
        """What isn't as it should be."""
        found = [f"left: {', '.join(self.left)}"] if self.left else []
        if self.verdict not in right(self.blow, self.moment):
            found.append(f"verdict {self.verdict}")
        return [*found, f"telemetry: {self.unreadable}"] if self.unreadable else found

    def __str__(self) -> str:
        closes = "-" if self.closes is None else self.closes
        said = "; ".join(self.faults) or ("missed" if self.missed else "well")
        return f"{self.moment:<7} {self.blow!s:<16} {self.verdict:<12} closes {closes:>3}  gone after {self.gone_s:5.2f} s  {said}"


class Struck:
    """One run that is struck: its launcher, its directory, its processes."""

    def __init__(self, folder: Path) -> None:
        self._mark, self._runs = uuid4().hex, folder / "runs"
        command = [
            sys.executable, "-m", "flame.launch.cli", "run", "toy", "--mode", "real", "--only", "fwdllm", "--yes",
            "--set", f"stop.cycles={CYCLES}", "--runs", str(self._runs),
        ]  # fmt: skip
        with (folder / "launcher.log").open("wb") as log:
            self.launcher = subprocess.Popen(command, env=os.environ | {MARK: self._mark}, stdout=log, stderr=log, start_new_session=True)

    def awaited(self, what: Callable[[], bool], said: str) -> None:
        """Wait until `what` holds, or the launcher has ended. Raises TimeoutError after PATIENCE_S."""
        until = monotonic() + PATIENCE_S
        while not what() and self.launcher.poll() is None:
            if monotonic() > until:
                raise TimeoutError(f"{said} was waited for for {PATIENCE_S:.0f} s")
            sleep(0.002)

    @property
    def run(self) -> Path | None:
        """Its directory, as soon as it says what is run."""
        return next((path.parent for path in self._runs.glob("*/condition.json")), None)

    def come(self, moment: str, blow: Blow) -> bool:
        """Whether the moment has come."""
        match moment:
            case "start":
                return self.run is not None
            case "middle":
                return self.closes() >= CLOSED
            case "end" if blow.whom == "worker":
                return self.closes() >= CYCLES
        return self.run is not None and (self.run / "verdict.json").exists()

    def closes(self) -> int:
        """Cycles that the aggregator has closed."""
        lines = self.run and self.run / "telemetry" / "aggregator-1.jsonl"
        return lines.read_bytes().count(b'"kind":"agg_round"') if lines and lines.exists() else 0

    def pid(self, blow: Blow) -> int | None:
        """The process that the blow is for, if it is there."""
        if blow.whom in ("group", "launcher"):
            return self.launcher.pid
        try:
            stored = orjson.loads((self.run / "launcher.json").read_bytes()) if self.run else {}
        except (OSError, ValueError):
            return None
        if blow.whom == "broker":
            return stored.get("broker")
        group: int | None = stored.get("group")
        if blow.whom == "aggregator" or not group:
            return group
        return next((process.pid for process in self.processes() if process.pid != group and _group(process.pid) == group), None)

    def strike(self, blow: Blow, pid: int | None) -> bool:
        """Send it; whether there was somebody to take it, who hadn't ended by himself."""
        try:
            if pid is None or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return False
            (os.killpg if blow.whom == "group" else os.kill)(pid, blow.sent)
        except (psutil.NoSuchProcess, ProcessLookupError):
            return False
        return True

    def processes(self) -> Iterator[psutil.Process]:
        """Everything that bears the mark and lives."""
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if process.environ().get(MARK) == self._mark and process.status() != psutil.STATUS_ZOMBIE:
                    yield process

    def left(self) -> tuple[list[psutil.Process], float]:
        """Who is there CLEAN_S after the launcher's end, and when the last one went."""
        begun = monotonic()
        while (there := list(self.processes())) and monotonic() - begun < CLEAN_S:
            sleep(0.05)
        return there, monotonic() - begun


def struck(blow: Blow, moment: str, folder: Path) -> Outcome:
    """Begin a run in `folder`, strike it, see it out, and look at what is left. Nothing outlives this."""
    one = Struck(folder)
    try:
        one.awaited(lambda: one.pid(blow) is not None, f"the {blow.whom} of {folder}")
        aimed = one.pid(blow)  # looked up before, since it takes longer than some have left to live
        one.awaited(lambda: one.come(moment, blow), f"the {moment} of {folder}")
        hit = one.strike(blow, aimed)
        one.launcher.wait(PATIENCE_S)
        there, gone_s = one.left()
        assert one.run is not None, (folder / "launcher.log").read_text()
        closes, unreadable = _read(one.run)
        return Outcome(blow, moment, not hit, verdict_of(one.run), tuple(map(_described, there)), gone_s, closes, unreadable)
    finally:
        for process in [*one.processes()]:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        one.launcher.wait(PATIENCE_S)


def _read(run: Path) -> tuple[int | None, str]:
    """Closes in the telemetry, None where nothing was written yet; and what is wrong with it."""
    if not any((run / "telemetry").glob("*.jsonl")):
        return None, ""
    try:
        telemetry = RunDir(run).telemetry
        return telemetry.frame("agg_round").height, ""
    except TelemetryError as error:
        return None, str(error).partition("\n")[0]


def _described(process: psutil.Process) -> str:
    with suppress(psutil.Error):
        return f"{process.pid} {' '.join(process.cmdline())[-60:]}"
    return str(process.pid)


def _group(pid: int) -> int:
    with suppress(ProcessLookupError):
        return os.getpgid(pid)
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Strike, a line each; 1 if anything is at fault."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("-n", type=int, default=1, help="how often each")
    parser.add_argument("--blow", action="append", choices=list(map(str, BLOWS)), help="only this one (repeatable)")
    parser.add_argument("--moment", action="append", choices=MOMENTS, help="only this one (repeatable)")
    options = parser.parse_args(arguments)
    found: list[Outcome] = []
    for number, moment, blow in product(range(options.n), options.moment or MOMENTS, BLOWS):
        if not options.blow or str(blow) in options.blow:
            with TemporaryDirectory(prefix=f"kill-{number}-") as folder:
                found.append(struck(blow, moment, Path(folder)))
            print(found[-1], flush=True)
    wrong = [outcome for outcome in found if outcome.faults]
    missed, slowest = sum(outcome.missed for outcome in found), max(outcome.gone_s for outcome in found)
    print(f"{len(found)} blows, {missed} missed, {len(wrong)} at fault; the last process was gone {slowest:.2f} s after the launcher")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
