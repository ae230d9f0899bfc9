"""Runs a program that must not outlive whoever started it: `python -m flame.runtime.brokers.guard PROGRAM ARGS...`

    launcher --pipe on stdin--> guard --dies with its parent--> program

The end of stdin is the end of the launcher, however it died, and then the program is terminated. When
the guard itself is killed, the kernel kills the program (Linux). A signal to end goes on to the
program; its exit code is the guard's.
"""

import ctypes
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from types import FrameType

GRACE_S = 3.0
_PR_SET_PDEATHSIG = 1


def main(command: list[str]) -> int:
    """Run `command` and return its exit code."""
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, preexec_fn=_die_with_parent)  # noqa: PLW1509 no thread runs yet

    def pass_on(number: int, frame: FrameType | None) -> None:
        child.send_signal(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, pass_on)
    threading.Thread(target=_end_with_stdin, args=(child,), daemon=True).start()
    return child.wait()


def _die_with_parent() -> None:
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _end_with_stdin(child: subprocess.Popen[bytes]) -> None:
    wait_for_end_of_stdin()
    child.terminate()
    try:
        child.wait(GRACE_S)
    except subprocess.TimeoutExpired:
        child.kill()


def wait_for_end_of_stdin() -> None:
    """Return when the other end of stdin is closed: when the process that holds it is gone."""
    with suppress(OSError):
        while os.read(0, 4096):
            pass


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
