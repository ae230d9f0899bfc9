"""The simulations of a sweep in processes of their own, so many at once."""

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryFile
from time import monotonic, sleep
from typing import IO

import orjson
from rich.console import Console

from flame.config.world import World
from flame.launch.folder.signals import on_signals
from flame.launch.sweeping.arm import Order
from flame.launch.sweeping.arms import Arm, find

LOOK_S = 0.1
END_S = 60.0
"""How long a simulation may take to end in order, before it is killed."""


class Crew:
    """Who is at work, and until when, if it is to stop."""

    def __init__(self, runs: Path, err: Console) -> None:
        self._runs, self._err = runs, err
        self._ended = self._all = 0
        self._at_work: dict[subprocess.Popen[bytes], tuple[Arm, IO[bytes]]] = {}
        self._until: float | None = None
        """When those at work are killed; None as long as nobody wants an end."""

    def carry_out(self, arms: Sequence[Arm], at_once: int) -> None:
        """All of them; after Ctrl-C those at work end in order, and nothing new begins. A second one waits for nobody."""
        waiting, self._ended, self._all = list(arms), 0, len(arms)
        with on_signals(self._stop):
            while self._at_work or (waiting and self._until is None):
                while waiting and len(self._at_work) < at_once and self._until is None:
                    self._start_if_free(waiting.pop(0))
                if self._until is not None and monotonic() >= self._until:
                    for process in self._at_work:
                        process.kill()
                for process in [each for each in self._at_work if each.poll() is not None]:
                    arm, said = self._at_work.pop(process)
                    self._tell(arm, _how(process.returncode, said))
                sleep(LOOK_S)

    def _start_if_free(self, arm: Arm) -> None:
        """Looks once more: another sweep may have come to it first."""
        find([arm], self._runs)
        if arm.free:
            self._start(arm)
        else:
            self._tell(arm, "is being run by somebody else" if arm.going else "is there already")

    def _tell(self, arm: Arm, how: str) -> None:
        self._ended += 1
        self._err.print(f"[{self._ended}/{self._all}] {arm}: {how}", markup=False, soft_wrap=True)

    def _start(self, arm: Arm) -> None:
        path = str(arm.begun) if arm.begun else None
        order = Order(arm.condition.model_dump_json(), World(kind="sim").model_dump_json(), arm.resolved.run_set, str(self._runs), path)
        line, said = orjson.dumps(asdict(order), option=orjson.OPT_APPEND_NEWLINE), TemporaryFile()  # noqa: SIM115
        process = subprocess.Popen(
            [sys.executable, "-m", "flame.launch.sweeping.arm"], stdin=subprocess.PIPE, stdout=said, start_new_session=True
        )
        self._at_work[process] = arm, said
        if process.stdin is not None:
            process.stdin.write(line)
            process.stdin.flush()

    def _stop(self, signal: str) -> None:
        again, count = self._until is not None, len(self._at_work)
        self._until = monotonic() + (0 if again else END_S)
        who = f"{count} simulation{'' if count == 1 else 's'}"
        how = f"{who} killed" if again else f"waiting for {who} to end in order"
        self._err.print(f"{signal}: {how}; run the sweep again to go on", markup=False)
        for process in self._at_work:
            if process.stdin is not None:
                process.stdin.close()


def _how(code: int, said: IO[bytes]) -> str:
    """What a simulation has said last, which is its verdict; the exit code of one that came to none."""
    with said:
        said.seek(0)
        lines = said.read().decode(errors="replace").splitlines()
    return lines[-1] if lines and code == 0 else f"exit {code}"
