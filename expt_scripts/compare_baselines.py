#!/usr/bin/env python3
"""Baselines side by side: `compare_baselines.py RUN... | NAME=RUN... [--to 0.8] [--out DIR]`. Mixed conditions are refused."""

import argparse
from pathlib import Path

from start import RUNS, accuracy, start


def main() -> None:
    """Print the table; write comparison.csv and the overlaid curves."""
    from flame.analysis.comparison import comparison
    from flame.analysis.tables import markdown, write_csv
    from flame.figures.page import OVERLAYS, draw, shown, taken
    from flame.figures.scene import Scene

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="+", metavar="RUN", help=RUNS)
    parser.add_argument("--to", metavar="A", type=accuracy, action="append", default=[], help="what an accuracy has cost; repeatable")
    parser.add_argument(
        "--out", metavar="DIR", type=Path, default=Path("figures/comparison"), help="folder of CSV and curves (%(default)s)"
    )
    asked = parser.parse_args()
    arms = taken(asked.runs)
    table = comparison(arms, asked.to)
    print(markdown(table))
    scene = Scene(shown(arms), asked.to[0] if asked.to else None)
    for file in (write_csv(table, asked.out / "comparison.csv"), *draw(OVERLAYS, scene, asked.out)):
        print(file)


if __name__ == "__main__":
    start(main)
