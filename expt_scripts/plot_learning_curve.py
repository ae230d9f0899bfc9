#!/usr/bin/env python3
"""Accuracy and loss of finished runs: `plot_learning_curve.py [RUN... | NAME=RUN...] [--run-set learn] [--x time] [--out DIR]`.

Without runs, the newest finished simulations of what the run-set is (docs/figures.md), seeds as mean and band.
"""

import argparse
from pathlib import Path

from start import RUNS, start


def main() -> None:
    """Draw both, and print peak and sustained accuracy, a row a baseline."""
    from flame.analysis.comparison import comparison
    from flame.analysis.tables import markdown
    from flame.figures.families.learning import Learning
    from flame.figures.page import draw, shown, taken
    from flame.figures.scene import Scene

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("labelled", nargs="*", metavar="RUN", help=RUNS)
    parser.add_argument("--runs", metavar="DIR", type=Path, default=Path("runs"), help="without RUN: the folder of runs (%(default)s)")
    parser.add_argument("--run-set", metavar="NAME", default="learn", help="without RUN: which of its run-sets (%(default)s)")
    parser.add_argument("--experiments", metavar="FILE", type=Path, help="instead of ./experiments.yaml: what the run-set is")
    parser.add_argument(
        "--x", choices=["time", "commits", "uploads", "passes", "bytes"], default="time", help="what it is drawn against (%(default)s)"
    )
    parser.add_argument("--out", metavar="DIR", type=Path, default=Path("figures/learning"), help="folder of the figures (%(default)s)")
    asked = parser.parse_args()
    arms = taken(asked.labelled or _own(asked.runs, asked.run_set, asked.experiments))
    print(markdown(comparison(arms).select("baseline", "n", "peak", "sustained", "worst", "last")))
    pictures = {y: Learning.model_validate({"x": asked.x, "y": y}) for y in ("accuracy", "loss")}
    print(*draw(pictures, Scene(shown(arms)), asked.out), sep="\n")


def _own(runs: Path, run_set: str, experiments: Path | None) -> list[str]:
    from flame.analysis.finished import own
    from flame.config.errors import ConfigError
    from flame.config.experiments import load

    registry = load(experiments)
    found = own(runs, run_set, registry).runs
    if not found:
        registry.resolve(run_set)
        raise ConfigError(f"no finished simulation of run-set `{run_set}` is in `{runs}`", f"`flame run {run_set} --mode sim`")
    return [str(run.path) for run in found.values()]


if __name__ == "__main__":
    start(main)
