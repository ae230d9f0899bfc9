"""What the scripts of this folder share: the project's own Python from a plain shell, and one way to refuse."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

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
