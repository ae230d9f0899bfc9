#!/usr/bin/env python3
"""Two runs side by side without their clocks: `logical_parity.py RUN RUN` (as `flame diff --logical`)."""

import sys

from start import start


def main() -> None:
    """Walk their released sequences, stamps, dues and ages left out."""
    from parity.reports.diff import main as walk

    raise SystemExit(walk(["--logical", *sys.argv[1:]]))


if __name__ == "__main__":
    start(main)
