#!/usr/bin/env python3
"""E1 to E5 of one run, and summary.json: `plot_run.py RUN [--out DIR] [--target 0.84]`."""

import argparse
from pathlib import Path

from start import start


def main() -> None:
    """Draw them into RUN/figures, or `--out`."""
    from flame.figures.page import plot_run, taken

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--target", type=float)
    asked = parser.parse_args()
    ((learned,),) = taken([str(asked.run)]).values()
    for file in plot_run(learned, asked.out or asked.run / "figures", asked.target):
        print(file)


if __name__ == "__main__":
    start(main)
