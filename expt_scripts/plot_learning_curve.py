#!/usr/bin/env python3
"""Accuracy and loss of simulated runs: against virtual time, commits, or accepted uploads.

    expt_scripts/plot_learning_curve.py --run-set learn --out runs/learning_curve.png
    expt_scripts/plot_learning_curve.py --x uploads --out curves.svg "as published=runs/A" "stable=runs/B"

Without runs, the newest finished one of each baseline of the run-set. Peak and sustained accuracy (mean of the
evaluations of the last hundred commits, or of the last tenth where there are fewer commits) are printed, a line a run.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import polars as pl
from plotlib.style import LOOKS, Look, use

from flame.telemetry.rundir import RunDir, RunName

AXES = {"time": "virtual time", "commits": "commits", "uploads": "accepted uploads"}
SUSTAINED = 100


@dataclass(frozen=True)
class Curve:
    """One run's evaluations in order: stamps (ns), commits and accepted uploads before each, accuracy, loss."""

    run: RunDir
    evaluations: pl.DataFrame

    @classmethod
    def of(cls, run: RunDir) -> "Curve":
        """Read it."""
        run.telemetry.load("agg_eval", "agg_round")
        closes = run.telemetry.frame("agg_round").filter(pl.col("committed")).select(commits=pl.col("model_version") + 1, uploads="accepts")
        evaluations = run.telemetry.frame("agg_eval").sort("_seq").with_columns(commits=pl.col("version"))
        return cls(run, evaluations.join(closes, on="commits", how="left").sort("_seq"))

    def summary(self, label: str) -> str:
        """One line: peak and sustained accuracy, with their conditions."""
        accuracy, commits = self.evaluations["accuracy"].to_list(), self.evaluations["commits"].to_list()
        tenth = max(1, len(accuracy) // 10)
        last = [a for a, at in zip(accuracy, commits, strict=True) if at > commits[-1] - SUSTAINED]
        last = last if commits[-1] > 2 * SUSTAINED else accuracy[-tenth:]
        sustained, peak = _shown(last), _shown([max((a for a in accuracy if a is not None), default=None)])
        return f"{label}: peak {peak}, sustained {sustained} (last {len(last)} of {len(accuracy)} evaluations)"


def newest(runs: Path, run_set: str) -> dict[str, RunDir]:
    """The newest finished simulation of each baseline, by baseline."""
    found: dict[str, RunDir] = {}
    for path in sorted(runs.iterdir() if runs.is_dir() else []):
        name = RunName.parse(path.name)
        if name is not None and name.run_set == run_set and name.world == "sim" and (path / "verdict.json").exists():
            found[name.baseline] = RunDir(path)
    return found


def draw(curves: Mapping[str, Curve], x: str, title: str, out: Path) -> None:
    """One picture with two panels: accuracy, loss."""
    import matplotlib.pyplot as plt

    figure, (top, bottom) = plt.subplots(2, 1, sharex=True, figsize=(3.4, 3.6))
    longest = max(int(curve.evaluations["stamp_ns"].max() or 0) for curve in curves.values())  # type: ignore[arg-type]
    unit, ns = ("h", 3.6e12) if longest > 3.6e12 else ("min", 6e10)
    for (label, curve), look in zip(curves.items(), LOOKS, strict=False):
        evaluations = curve.evaluations
        along = evaluations["stamp_ns"].to_numpy() / ns if x == "time" else evaluations[x].to_numpy()
        _curve(top, along, evaluations["accuracy"].to_numpy(), look, label)
        _curve(bottom, along, evaluations["loss"].to_numpy(), look, label)
    top.set_ylabel("accuracy")
    top.set_title(title, fontsize=8)
    bottom.set_ylabel("loss (nats)")
    bottom.set_xlabel(AXES[x] + (f" ({unit})" if x == "time" else ""))
    figure.legend(*top.get_legend_handles_labels(), loc="upper center", bbox_to_anchor=(0.5, 0.02), ncols=2)
    figure.savefig(out)


def _curve(axes: Any, x: Any, y: Any, look: Look, label: str) -> None:
    axes.plot(x, y, look.line, color=look.colour, marker=look.marker, markevery=max(1, len(y) // 8), markersize=3, label=label)


def _shown(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{fmean(known):.3f}" if known and len(known) == len(values) else "-"


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
    found = {label: RunDir(Path(path)) for label, _, path in pairs} or newest(options.runs, options.run_set)
    if not found:
        print(f"no finished simulation of run-set `{options.run_set}` in {options.runs}", file=sys.stderr)
        print(f"hint: flame run {options.run_set} --mode sim", file=sys.stderr)
        return 2
    use()
    curves = {label: Curve.of(run) for label, run in found.items()}
    condition = next(iter(found.values())).condition
    draw(curves, options.x, f"{condition.data or condition.task}, N = {condition.trainers}, seed {condition.seed}, n = 1", options.out)
    for label, curve in curves.items():
        print(curve.summary(label))
    print(f"picture: {options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
