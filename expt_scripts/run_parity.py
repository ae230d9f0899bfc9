#!/usr/bin/env python3
"""Whether real runs and their simulated twins agree: `run_parity.py [PATH ...] [--json] [--yes] ...` (as `flame parity`)."""

import os
import sys
from pathlib import Path

PYTHON = Path(__file__).resolve().parents[1] / ".venv" / "bin" / "python"


def main() -> int:
    """Run the checker; from a plain shell, with the project's own Python."""
    try:
        from parity.cli import main as check
    except ModuleNotFoundError:
        if not PYTHON.exists() or Path(sys.executable) == PYTHON:
            raise
        os.execv(PYTHON, [str(PYTHON), *sys.argv])
    return check()


if __name__ == "__main__":
    raise SystemExit(main())
