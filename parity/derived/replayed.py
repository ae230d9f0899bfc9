"""A run's journals, replayed: once for all who ask (P0, and the explainer)."""

from pathlib import Path
from typing import Protocol

from parity.evidence import Run


class Replayed(Protocol):
    """One node. difference: the first that differs, at step `step` and instant `now` (ns)."""

    node: str
    steps: int
    difference: str | None
    skipped: str | None
    step: int | None
    now: int | None


def replayed(run: Run) -> list[Replayed]:
    """The replay of each node; use it by `run.derived(replayed)`."""
    return _replay(run.dir.path)


def replayed_if_readable(run: Run) -> list[Replayed]:
    """The same; nothing where a journal can't be read, which P0 reports."""
    from flame.runtime.books.journal import CorruptJournal

    try:
        return run.derived(replayed)
    except CorruptJournal:
        return []


def _replay(path: Path) -> list[Replayed]:
    from flame.runtime.books.replay import replay  # machines are run again here, and nowhere else in this package

    return list(replay(path))
