"""What the scripts of this folder share: the project's own Python from a plain shell, one way to refuse, kinds of arguments."""

import os
import sys
from argparse import ArgumentTypeError
from collections.abc import Callable
from pathlib import Path

RUNS = "run directories, a folder of them (its finished simulations, no forks), or NAME=DIR"
PYTHON = Path(__file__).resolve().parents[1] / ".venv" / "bin" / "python"


def start(main: Callable[[], object]) -> None:
    """Run `main`; a ConfigError is its message and exit code 2."""
    try:
        from flame.config.errors import ConfigError
    except ModuleNotFoundError:
        if not PYTHON.exists() or Path(sys.executable) == PYTHON:
            raise
        os.execv(PYTHON, [str(PYTHON), *sys.argv])
    try:
        main()
    except ConfigError as error:
        print(error, file=sys.stderr)
        raise SystemExit(2) from None


def count(text: str) -> int:
    """A whole number from 1 on."""
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"{text!r} is no whole number from 1 on")
    return int(text)


def accuracy(text: str) -> float:
    """A fraction, over 0 and at most 1."""
    return _between(text, 1.0, "no accuracy over 0 and up to 1, such as 0.84")


def above_zero(text: str) -> float:
    """A number over 0."""
    return _between(text, float("inf"), "no number over 0")


def _between(text: str, most: float, otherwise: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not (0 < value <= most and value != float("inf")):
        raise ArgumentTypeError(f"{text!r} is {otherwise}")
    return value
