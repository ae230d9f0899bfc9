#!/usr/bin/env python3
"""E1 to E5 of one run, and summary.json: `plot_run.py RUN [--out DIR] [--target 0.84]`."""

import argparse
from pathlib import Path

from start import accuracy, start


def main() -> None:
    """Draw them into RUN/figures, or `--out`."""
    from flame.figures.page import one, plot_run

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", metavar="RUN", type=Path, help="a run directory")
    parser.add_argument("--out", metavar="DIR", type=Path, help="instead of RUN/figures")
    parser.add_argument("--target", metavar="A", type=accuracy, help="an accuracy, drawn with the gap to it, and what it has cost")
    asked = parser.parse_args()
    learned = one(str(asked.run))
    for file in plot_run(learned, asked.out or learned.run.path / "figures", asked.target):
        print(file)


if __name__ == "__main__":
    start(main)
