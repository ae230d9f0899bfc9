#!/usr/bin/env python3
"""Accuracy and loss of simulated runs: against virtual time, commits, or accepted uploads.

    expt_scripts/plot_learning_curve.py --run-set learn --out runs/learning_curve.png
    expt_scripts/plot_learning_curve.py --x uploads --out curves.svg "as published=runs/A" "stable=runs/B"

Without runs, the newest finished one of each baseline of the run-set. Peak and sustained accuracy
(`flame.analysis.curve`) are printed, a line a run.
"""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from plotlib.style import LOOKS, Look, use

from flame.analysis.curve import window
from flame.analysis.finished import newest
from flame.analysis.learned import Learned
from flame.telemetry.rundir import RunDir

AXES = {"time": "virtual time", "commits": "commits", "uploads": "accepted uploads"}


def draw(curves: Mapping[str, Learned], x: str, title: str, out: Path) -> None:
    """One picture with two panels: accuracy, loss."""
    import matplotlib.pyplot as plt

    figure, (top, bottom) = plt.subplots(2, 1, sharex=True, figsize=(3.4, 3.6))
    unit, seconds = ("h", 3600) if max(curve.end for curve in curves.values()) > 3.6e12 else ("min", 60)
    for (label, learned), look in zip(curves.items(), LOOKS, strict=False):
        curve = learned.curve
        along = curve["time_s"].to_numpy() / seconds if x == "time" else curve[x].to_numpy()
        _curve(top, along, curve["accuracy"].to_numpy(), look, label)
        _curve(bottom, along, curve["loss"].to_numpy(), look, label)
    top.set_ylabel("accuracy")
    top.set_title(title, fontsize=8)
    bottom.set_ylabel("loss (nats)")
    bottom.set_xlabel(AXES[x] + (f" ({unit})" if x == "time" else ""))
    figure.legend(*top.get_legend_handles_labels(), loc="upper center", bbox_to_anchor=(0.5, 0.02), ncols=2)
    figure.savefig(out)


def _curve(axes: Any, x: Any, y: Any, look: Look, label: str) -> None:
    axes.plot(x, y, look.line, color=look.colour, marker=look.marker, markevery=max(1, len(y) // 8), markersize=3, label=label)


def summary(label: str, learned: Learned) -> str:
    """One line: peak and sustained accuracy, with their conditions."""
    peak, lasting = ("-" if value is None else f"{value:.3f}" for value in (learned.peak(), learned.sustained()))
    return f"{label}: peak {peak}, sustained {lasting} (last {window(learned.evaluations)} of {learned.rounds['committed'].sum()} commits)"


def main() -> int:
    """Draw, and print a line for each run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("labelled", nargs="*", metavar="LABEL=RUN_DIR")
    parser.add_argument("--runs", type=Path, default=Path("runs"))
    parser.add_argument("--run-set", default="learn")
    parser.add_argument("--x", choices=list(AXES), default="time")
    parser.add_argument("--out", type=Path, default=Path("runs/learning_curve.png"))
    options = parser.parse_args()
    pairs = [each.partition("=") for each in options.labelled]
    found = {label: RunDir(Path(path)) for label, _, path in pairs} or {
        baseline: run for (baseline, _), run in newest(options.runs, options.run_set).items()
    }
    if not found:
        print(f"no finished simulation of run-set `{options.run_set}` in {options.runs}", file=sys.stderr)
        print(f"hint: flame run {options.run_set} --mode sim", file=sys.stderr)
        return 2
    use()
    curves = {label: Learned(run) for label, run in found.items()}
    condition = next(iter(found.values())).condition
    draw(curves, options.x, f"{condition.data or condition.task}, N = {condition.trainers}, seed {condition.seed}, n = 1", options.out)
    for label, curve in curves.items():
        print(summary(label, curve))
    print(f"picture: {options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
