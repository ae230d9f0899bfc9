"""A learning curve of each arm: accuracy or loss against time, commits, uploads, passes or bytes.

Seeds are a mean and a band from the lowest to the highest. On accuracy the peak of the mean (a star) and the sustained
accuracy (a bar over its commits) are both marked, and the gap of the own arm, or of the best, to the target. Ends of
laps are drawn, because that is where runs collapse.
"""

from statistics import fmean
from typing import Literal

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from flame.analysis import curve as curves
from flame.analysis.seeds import band
from flame.figures.canvas import legend_above, panel
from flame.figures.families.family import Family
from flame.figures.labels import label_line
from flame.figures.scene import CutoffMode, Picture, Scene, Shown, seeds_told
from flame.figures.units import MEASURES, QUANTITIES

CUT = {"peak_acc": "its highest accuracy", "last_improvement": "its last improvement of accuracy or loss"}
ARROW = 0.03
"""From which gap on an arrow has room."""
CURVES = 2
"""From which layer on lines are curves and their marks, and no longer what lies behind them."""
LAP_COLUMNS = ("commits", "uploads", "time_s", "wall_s")


class Learning(Family):
    """x: what it is drawn against. laps: whether ends of laps are marked."""

    family: Literal["learning"] = "learning"
    x: Literal["time", "wall", "commits", "uploads", "passes", "bytes", "compute"] = "time"
    y: Literal["accuracy", "loss"] = "accuracy"
    laps: bool = True

    def draw(self, scene: Scene) -> Picture:
        """Draw it."""
        figure, axes = panel(2.5)
        drawn = {arm.key: self._band(arm, scene.style.cutoff) for arm in scene.arms}
        quantity, measure = QUANTITIES[self.x], MEASURES[self.y]
        size, unit = quantity.scale([float(table["x"].max()) for table in drawn.values() if table.height])  # type: ignore[arg-type]
        marks = [self._arm(axes, arm, drawn[arm.key], size, scene.style.smooth) for arm in scene.arms]
        if self.laps and quantity.column in LAP_COLUMNS:
            self._laps(axes, scene, drawn, size)
        target = scene.target if self.y == "accuracy" else None
        told = _target(axes, target, [mark for mark in marks if mark is not None]) if target is not None else []
        axes.set_xlabel(quantity.label(unit))
        axes.set_ylabel(measure.label(measure.scales[0][1]))
        legend_above(figure, axes, extra=_keys() if self.y == "accuracy" else ())
        if target is not None:
            label_line(figure, axes, target, told, [line for line in axes.lines if line.get_zorder() >= CURVES])
        return Picture(figure, self._caption(scene))

    def _band(self, arm: Shown, cutoff: CutoffMode) -> pl.DataFrame:
        return band([cut(learned.curve, cutoff) for learned in arm.runs], QUANTITIES[self.x].column, MEASURES[self.y].column)

    def _arm(self, axes: Axes, arm: Shown, table: pl.DataFrame, size: float, smooth: int) -> tuple[Shown, float, float] | None:
        """Draw one arm; returns it with the end of its curve and its sustained accuracy."""
        x, mean, low, high = (table[name].to_numpy() for name in ("x", "mean", "low", "high"))
        if not len(x):
            axes.plot([], [], arm.look.line, color=arm.look.colour, marker=arm.look.marker, label=f"{arm.label}, nothing to show")
            return None
        x, line, order = x / size, mean, 3 if arm.look.own else 2
        if smooth > 1:
            axes.plot(x, mean, "-", color=arm.look.colour, linewidth=0.4, alpha=0.6, zorder=order)
            line, low, high = rolling(mean, smooth, np.mean), rolling(low, smooth, np.min), rolling(high, smooth, np.max)
        if len(arm.runs) > 1 or smooth > 1:
            axes.fill_between(x, low, high, color=arm.look.colour, alpha=0.18, linewidth=0, zorder=order - 1)
        axes.plot(
            x, line, linestyle=arm.look.line, color=arm.look.colour, marker=arm.look.marker, markevery=max(1, len(x) // 6),
            linewidth=arm.look.width, label=arm.label, zorder=order,
        )  # fmt: skip
        return self._marks(axes, arm, x, mean) if self.y == "accuracy" else None

    def _marks(self, axes: Axes, arm: Shown, x: NDArray[np.float64], mean: NDArray[np.float64]) -> tuple[Shown, float, float] | None:
        top = int(np.argmax(mean))
        axes.plot(x[top], mean[top], "*", color=arm.look.colour, markersize=7, markeredgecolor="white", markeredgewidth=0.5, zorder=5)
        lasting = [learned.sustained() for learned in arm.runs]
        known = [value for value in lasting if value is not None]
        if len(known) < len(lasting):
            return None
        share = fmean(curves.window(run.evaluations) / max(1, int(run.rounds["committed"].sum())) for run in arm.runs)
        begin = x[-1] - share * (x[-1] - x[0])
        axes.plot([begin, x[-1]], [fmean(known)] * 2, "-", color=arm.look.colour, linewidth=3, alpha=0.55, solid_capstyle="butt", zorder=4)
        return arm, float(x[-1]), fmean(known)

    def _laps(self, axes: Axes, scene: Scene, drawn: dict[str, pl.DataFrame], size: float) -> None:
        """Faint lines where all arms end their laps together, ticks on the curves where they don't."""
        column = QUANTITIES[self.x].column
        ends = {arm.key: lap_ends(arm, column) for arm in scene.arms}
        together = len({tuple(places) for places in ends.values()}) == 1
        for arm in scene.arms:
            table = drawn[arm.key]
            for end in ends[arm.key] if table.height else []:
                if together and arm is scene.arms[0]:
                    axes.axvline(end / size, color="#7f7f7f", linewidth=0.6, linestyle=(0, (1, 2)), zorder=0)
                elif not together and table["x"].item(0) <= end <= table["x"].item(-1):
                    height = np.interp(end, table["x"].to_numpy(), table["mean"].to_numpy())
                    axes.plot(end / size, height, "|", color=arm.look.colour, markersize=9, markeredgewidth=0.8, zorder=4)

    def _caption(self, scene: Scene) -> str:
        seeds = max(len(arm.runs) for arm in scene.arms)
        told = [seeds_told(scene.arms) + (": mean, and a band from the lowest to the highest" if seeds > 1 else "")]
        if self.y == "accuracy":
            told.append("star: peak of the mean; bar at the end: sustained accuracy (mean over the last hundred commits, at most a third)")
        if self.laps and QUANTITIES[self.x].column in LAP_COLUMNS:
            told.append("dotted lines or ticks: ends of laps")
        if scene.style.smooth > 1:
            told.append(
                f"line: running mean of {scene.style.smooth} evaluations, for the eye; thin and shaded: raw values and their envelope"
            )
        if scene.style.cutoff != "none":
            told.append(f"each curve is cut at {CUT[scene.style.cutoff]}; bars are of whole runs")
        return "; ".join(told)


def cut(curve: pl.DataFrame, at: CutoffMode) -> pl.DataFrame:
    """The curve up to its highest accuracy, or to the last evaluation that was better than all before it; or all of it."""
    if at == "none" or not curve.height:
        return curve
    accuracy, loss = curve["accuracy"], curve["loss"]
    if at == "peak_acc":
        last = accuracy.arg_max()
    else:
        better = (accuracy > accuracy.cum_max().shift(1)) | (loss < loss.cum_min().shift(1))
        last = better.fill_null(False).arg_true().max() or 0  # type: ignore[assignment]
    return curve.head((last or 0) + 1)


def rolling(values: NDArray[np.float64], width: int, of: object) -> NDArray[np.float64]:
    """`of` over a centred window of `width` values, shorter at the ends."""
    half = width // 2
    return np.array([of(values[max(0, at - half) : at + half + 1]) for at in range(len(values))])  # type: ignore[operator]


def lap_ends(arm: Shown, column: str) -> list[float]:
    """Where laps ended, mean over the seeds, as far as all of them ended them."""
    ends = [learned.laps[column].to_list() for learned in arm.runs]
    return [fmean(places) for places in zip(*ends, strict=False)] if all(ends) else []


def _target(axes: Axes, target: float, marks: list[tuple[Shown, float, float]]) -> list[str]:
    """A line at the target, and an arrow for the gap to it of the own arm, or of the best; what to write at the line, longest first."""
    axes.axhline(target, color="black", linewidth=0.7, linestyle=(0, (4, 2)), zorder=1)
    own = [mark for mark in marks if mark[0].look.own] or marks
    line = f"target {target:g}"
    if not own:
        return [line]
    arm, end, lasting = max(own, key=lambda mark: mark[2])
    if abs(target - lasting) >= ARROW:
        axes.annotate("", (end, target), (end, lasting), arrowprops={"arrowstyle": "<->", "linewidth": 0.6, "shrinkA": 0, "shrinkB": 0})
    gap = f"{lasting - target:+.3f}"
    return [f"{line}, {arm.name} {gap}", f"{line}, {gap}", line]


def _keys() -> list[tuple[Line2D, str]]:
    star = Line2D([], [], linestyle="", marker="*", color="#555555", markersize=6)
    bar = Line2D([], [], linestyle="-", linewidth=3, color="#555555", alpha=0.55)
    return [(star, "peak"), (bar, "sustained")]
