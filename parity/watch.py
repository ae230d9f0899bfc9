"""`flame parity --watch`: look again whenever a run has ended.

What was seen is the set of ended runs and when each ended. Nothing is kept beside it, the folders are looked at
every two seconds, and the watch has an end: its time, or Ctrl-C, which is no error.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic, sleep

POLL_S = 2.0
"""Seconds between two looks at the folders."""

Seen = frozenset[tuple[Path, int]]


def watch(check: Callable[[], int], folders: Sequence[Path], seconds: float, pause: Callable[[float], None] = sleep) -> int:
    """Check now, and again whenever a run has ended in `folders`. After `seconds`, or Ctrl-C: the exit code of the last check."""
    code, end = 2, monotonic() + seconds
    seen: Seen | None = None
    try:
        while True:
            now = ended(folders)
            if now != seen:
                code, seen = check(), now
            left = end - monotonic()
            if left <= 0:
                return code
            pause(min(POLL_S, left))
    except KeyboardInterrupt:
        return code


def ended(folders: Sequence[Path]) -> Seen:
    """The runs in `folders`, or that are `folders`, that have ended, each with the instant at which it did."""
    verdicts = [file for folder in folders for file in (folder / "verdict.json", *folder.glob("*/verdict.json")) if file.is_file()]
    return Seen((file.parent, file.stat().st_mtime_ns) for file in verdicts)
