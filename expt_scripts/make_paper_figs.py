#!/usr/bin/env python3
"""The figures of a paper from finished runs: `make_paper_figs.py figs.yaml [--out DIR] [--run ARM=DIR] ...` (as `flame figs`)."""

import os
import sys
from pathlib import Path

PYTHON = Path(__file__).resolve().parents[1] / ".venv" / "bin" / "python"


def main() -> None:
    """Draw them; from a plain shell, with the project's own Python."""
    try:
        from flame.launch.cli import app
    except ModuleNotFoundError:
        if not PYTHON.exists() or Path(sys.executable) == PYTHON:
            raise
        os.execv(PYTHON, [str(PYTHON), *sys.argv])
    app(["figs", *sys.argv[1:]], prog_name="make_paper_figs.py")


if __name__ == "__main__":
    main()
