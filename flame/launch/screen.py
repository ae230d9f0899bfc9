"""The consoles: people read stderr, data goes to stdout. NO_COLOR and the terminal's width are respected."""

import os
import sys
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

PIPE_WIDTH = 140
"""Columns where there is no terminal that has some."""


@cache
def err() -> "Console":
    """stderr."""
    return _console(stderr=True)


@cache
def out() -> "Console":
    """stdout."""
    return _console(stderr=False)


def _console(*, stderr: bool) -> "Console":
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() or "COLUMNS" in os.environ else PIPE_WIDTH
    return Console(stderr=stderr, width=width, highlight=False)
