#!/usr/bin/env python3
"""Accuracy and loss against virtual time, for the newest run of each baseline of a run-set.

    expt_scripts/plot_learning_curve.py --run-set learn --out runs/learning_curve.png

Peak and sustained accuracy (mean of the last tenth of the evaluations) are printed, one line a baseline.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

from plotlib.style import LOOKS, Look, use

from flame.telemetry.rundir import RunDir, RunName


def newest(runs: Path, run_set: str) -> dict[str, RunDir]:
    """The newest finished simulation of each baseline, by baseline."""
    found: dict[str, RunDir] = {}
    for path in sorted(runs.iterdir() if runs.is_dir() else []):
        name = RunName.parse(path.name)
        if name is not None and name.run_set == run_set and name.world == "sim" and (path / "verdict.json").exists():
            found[name.baseline] = RunDir(path)
    return found


def draw(found: dict[str, RunDir], out: Path) -> None:
    """One picture with two panels: accuracy, loss."""
    import matplotlib.pyplot as plt

    figure, (top, bottom) = plt.subplots(2, 1, sharex=True, figsize=(3.4, 3.6))
    curves = {baseline: run.telemetry.frame("agg_eval").sort("stamp_ns") for baseline, run in found.items()}
    unit, ns = ("h", 3.6e12) if max(evals["stamp_ns"].max() for evals in curves.values()) > 3.6e12 else ("min", 6e10)
    for (baseline, evals), look in zip(curves.items(), LOOKS, strict=False):
        time = evals["stamp_ns"].to_numpy() / ns
        _curve(top, time, evals["accuracy"].to_numpy(), look, baseline)
        _curve(bottom, time, evals["loss"].to_numpy(), look, baseline)
    run = next(iter(found.values()))
    top.set_ylabel("accuracy")
    top.set_title(f"{run.condition.data or run.condition.task}, N = {run.condition.trainers}, seed {run.condition.seed}, n = 1", fontsize=8)
    bottom.set_ylabel("loss (nats)")
    bottom.set_xlabel(f"virtual time ({unit})")
    top.legend(loc="lower right")
    figure.savefig(out)


def _curve(axes: Any, x: Any, y: Any, look: Look, label: str) -> None:
    axes.plot(x, y, look.line, color=look.colour, marker=look.marker, markevery=max(1, len(y) // 8), markersize=3, label=label)


def summary(baseline: str, run: RunDir) -> str:
    """One line: peak and sustained accuracy, with their conditions."""
    evals = run.telemetry.frame("agg_eval").sort("stamp_ns")
    accuracy, last = evals["accuracy"], max(1, len(evals) // 10)
    return f"{baseline}: peak {accuracy.max():.3f}, sustained {accuracy.tail(last).mean():.3f} (last {last} of {len(evals)} evaluations)"


def main() -> int:
    """Draw, and print a line for each baseline."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, default=Path("runs"))
    parser.add_argument("--run-set", default="learn")
    parser.add_argument("--out", type=Path, default=Path("runs/learning_curve.png"))
    options = parser.parse_args()
    found = newest(options.runs, options.run_set)
    if not found:
        print(f"no finished simulation of run-set `{options.run_set}` in {options.runs}", file=sys.stderr)
        print(f"hint: flame run {options.run_set} --mode sim", file=sys.stderr)
        return 2
    use()
    draw(found, options.out)
    for baseline, run in found.items():
        print(summary(baseline, run))
    print(f"picture: {options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
