"""Asking a run to end: by a signal to its launcher, or from anywhere by a file in its directory (`flame stop`).

Both are only noted here. The run's driver takes what was asked to the aggregator as an event, `StopAsked`, so that
the run ends in order: INTERRUPTED, with a journal and telemetry that can be read.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic

from flame.launch.folder.signals import on_signals

FILE = "stop"
LOOK_S = 0.25
"""Wall seconds between two looks for the file."""


class Asked:
    """What a run has been asked. again: it was asked by a second signal, and its launcher shall wait no longer."""

    def __init__(self) -> None:
        self._run: Path | None = None
        self._looked = 0.0
        self._signals: list[str] = []
        self._written: str | None = None

    def within(self, run: Path) -> None:
        """From now on a file in `run` asks too; one that lay there before asks nothing any more."""
        (run / FILE).unlink(missing_ok=True)
        self._run = run

    def signalled(self, name: str) -> None:
        """A signal came."""
        self._signals.append(name)

    @property
    def why(self) -> str | None:
        """Why it shall end, None as long as it needn't."""
        if self._signals:
            return self._signals[0]
        if self._run is not None and self._written is None and monotonic() - self._looked >= LOOK_S:
            self._looked = monotonic()
            self._written = asked(self._run)
        return self._written

    @property
    def again(self) -> bool:
        """Whether there was a second signal."""
        return len(self._signals) > 1


@contextmanager
def listening() -> Iterator[Asked]:
    """While inside, what asks a run to end is noted, and nothing else comes of it. Begins before there is a directory to leave behind."""
    found = Asked()
    with on_signals(found.signalled):
        yield found


def ask(run: Path, why: str) -> None:
    """Ask from outside; whoever conducts the run finds it within LOOK_S."""
    aside = run / f"{FILE}.part"
    aside.write_text(why)
    aside.replace(run / FILE)


def asked(run: Path) -> str | None:
    """What was asked from outside, if anything."""
    try:
        return (run / FILE).read_text() or "asked to stop"
    except OSError:
        return None
