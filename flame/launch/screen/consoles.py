"""The consoles, and refusals on them: people read stderr, data goes to stdout. NO_COLOR and the terminal's width are respected."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

from flame.answers import yes

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    Cells = Sequence[str | Text]

REFUSED = 2
PIPE_WIDTH = 140
"""Columns where there is no terminal that has some."""
FOLDED = 30
"""Columns that are kept for one whose cells are folded."""


@cache
def err() -> "Console":
    """stderr."""
    return _console(stderr=True)


@cache
def out() -> "Console":
    """stdout."""
    return _console(stderr=False)


def agreed(question: str, *, unasked: bool = True) -> bool:
    """Ask, where there is somebody to ask; elsewhere the answer is `unasked`: a command to run is its own."""
    if not sys.stdin.isatty():
        return unasked
    err().print(f"{question} \\[Y/n] " if unasked else f"{question} \\[y/N] ", end="")
    return yes(sys.stdin, unasked=unasked)


@contextmanager
def refusals() -> Iterator[None]:
    """A configuration that can't be run, and a run that can't be read, are one message and exit code 2."""
    import typer

    from flame.config.errors import ConfigError

    try:
        yield
    except typer.Exit:
        raise
    except ConfigError as error:
        err().print(str(error), markup=False, soft_wrap=True)
        raise typer.Exit(REFUSED) from None
    except Exception as error:
        from flame.telemetry.reader import TelemetryError  # what reads frames is heavy, and most commands need none

        if not isinstance(error, TelemetryError):
            raise
        err().print(f"error: {error}", markup=False, soft_wrap=True)
        raise typer.Exit(REFUSED) from None


def table(
    console: "Console", titles: Sequence[str], rows: Sequence["Cells"], spare: Sequence[str], numbers: Sequence[str] = (), folded: str = "",
) -> "Table":  # fmt: skip
    """A table that fits: columns of `spare` are left out, the first ones first, while it is too wide; `numbers` stand to the right.

    folded: the column whose cells may take several lines, down to FOLDED columns, before any is left out; else that is the last one's lot.
    """
    from rich.measure import Measurement
    from rich.table import Table

    def made(least: int | None) -> "Table":
        drawn = Table(box=None, padding=(0, 1), header_style="bold")
        for place in kept:
            right, narrow = titles[place] in numbers, titles[place] == (folded or titles[-1])
            width = least if titles[place] == folded else None
            drawn.add_column(titles[place], justify="right" if right else "left", no_wrap=not narrow, overflow="fold", max_width=width)
        for row in rows:
            drawn.add_row(*(row[place] for place in kept))
        return drawn

    left_out: list[str] = []
    while True:
        kept = [place for place, title in enumerate(titles) if title not in left_out]
        wide = console.options.update(max_width=10_000)
        if len(left_out) == len(spare) or Measurement.get(console, wide, made(FOLDED)).maximum <= console.width:
            return made(None)
        left_out.append(spare[len(left_out)])


def _console(*, stderr: bool) -> "Console":
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() or "COLUMNS" in os.environ else PIPE_WIDTH
    return Console(stderr=stderr, width=width, highlight=False)
