#!/usr/bin/env python3
"""Accuracy and loss of finished runs: `plot_learning_curve.py [RUN... | NAME=RUN...] [--run-set learn] [--x time] [--out DIR]`.

Without runs, the newest finished simulations of what the run-set is (docs/figures.md), seeds as mean and band.
"""

import argparse
from pathlib import Path

from start import start


def main() -> None:
    """Draw both, and print peak and sustained accuracy, a row a baseline."""
    from flame.analysis.comparison import comparison
    from flame.analysis.finished import own
    from flame.analysis.tables import markdown
    from flame.config.experiments import load
    from flame.figures.families.learning import Learning
    from flame.figures.page import draw, shown, taken
    from flame.figures.scene import Scene

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("labelled", nargs="*", metavar="RUN")
    parser.add_argument("--runs", type=Path, default=Path("runs"))
    parser.add_argument("--run-set", default="learn")
    parser.add_argument("--experiments", type=Path, help="instead of ./experiments.yaml, which says what the run-set is")
    parser.add_argument("--x", choices=["time", "commits", "uploads", "passes", "bytes"], default="time")
    parser.add_argument("--out", type=Path, default=Path("figures/learning"))
    asked = parser.parse_args()
    arms = taken(asked.labelled or [str(run.path) for run in own(asked.runs, asked.run_set, load(asked.experiments)).runs.values()])
    if not arms:
        raise SystemExit(f"no finished simulation of run-set `{asked.run_set}` in {asked.runs}\nhint: flame run {asked.run_set} --mode sim")
    print(markdown(comparison(arms).select("baseline", "n", "peak", "sustained", "worst", "last")))
    pictures = {y: Learning.model_validate({"x": asked.x, "y": y}) for y in ("accuracy", "loss")}
    print(*draw(pictures, Scene(shown(arms)), asked.out), sep="\n")


if __name__ == "__main__":
    start(main)
