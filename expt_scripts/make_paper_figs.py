#!/usr/bin/env python3
"""The figures of a paper from finished runs: `make_paper_figs.py figs.yaml [--out DIR] [--run ARM=DIR] ...` (as `flame figs`)."""

import sys

from start import start


def main() -> None:
    """Draw them."""
    from flame.launch.cli import app

    app(["figs", *sys.argv[1:]], prog_name="make_paper_figs.py")


if __name__ == "__main__":
    start(main)
