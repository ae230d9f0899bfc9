"""How the gate's variance V falls within a bin: the median over bins against the pool, and the quartiles about it.

Bins end when their rule says so, so later points are of fewer bins; where fewer than `least` are left, nothing is drawn.
The thin line is the law of independent uploads, V ~ 1/n, through the first point of the first arm.
"""

from typing import Literal

import polars as pl
from matplotlib.ticker import LogLocator, NullLocator
from pydantic import PositiveInt

from flame.analysis.variance import decay, mean_decay
from flame.config.errors import ConfigError
from flame.figures.canvas import legend_above, panel
from flame.figures.families.family import Family
from flame.figures.scene import Picture, Scene, Shown, seeds_told


class VarianceDecay(Family):
    """bins: only the first so many of each run, for a like-for-like comparison. least: bins behind a point."""

    family: Literal["variance"] = "variance"
    bins: PositiveInt | None = None
    least: PositiveInt = 3

    def draw(self, scene: Scene) -> Picture:
        """Draw it."""
        tables = {arm.key: self._table(arm) for arm in scene.arms}
        if not any(table.height for table in tables.values()):
            raise ConfigError(f"no {self.least} bins of these runs have a variance at one iteration", "lower `least`, or give longer runs")
        figure, axes = panel(2.4)
        for arm in scene.arms:
            n, low, median, high = (tables[arm.key][name].to_numpy() for name in ("n", "low", "median", "high"))
            axes.fill_between(n, low, high, color=arm.look.colour, alpha=0.18, linewidth=0)
            axes.plot(
                n, median, linestyle=arm.look.line, color=arm.look.colour, marker=arm.look.marker, linewidth=arm.look.width, label=arm.label
            )
        self._law(axes, next(table for table in tables.values() if table.height))
        for threshold in sorted(
            {value for arm in scene.arms for run in arm.runs for value in run.rounds["threshold"].drop_nulls().unique()}
        ):
            axes.axhline(threshold, color="black", linewidth=0.7, linestyle=(0, (4, 2)))
            axes.annotate(f"threshold {threshold:g}", (0, threshold), xycoords=("axes fraction", "data"), xytext=(2, 1.5),
                          textcoords="offset points", fontsize=6)  # fmt: skip
        axes.set_xscale("log")
        axes.set_yscale("log")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axis.set_major_formatter("{x:g}")
            axis.set_minor_locator(NullLocator())
        axes.set_xlabel("uploads in the pool of a bin (count)")
        axes.set_ylabel("variance V (per coordinate)")
        legend_above(figure, axes)
        which = f"the first {self.bins} bins of each run" if self.bins else "all bins"
        told = f"median of V over {which}, shaded: quartiles over bins; points of fewer than {self.least} bins are left out"
        return Picture(figure, f"{told}; thin: V ~ 1/n; {seeds_told(scene.arms)}")

    def _table(self, arm: Shown) -> pl.DataFrame:
        closes = pl.concat([decay(run.rounds, self.bins) for run in arm.runs])
        return mean_decay(closes).filter(pl.col("bins") >= self.least)

    @staticmethod
    def _law(axes: object, table: pl.DataFrame) -> None:
        first, last = table["n"].item(0), table["n"].item(-1)
        axes.plot(  # type: ignore[attr-defined]
            [first, last], [table["median"].item(0), table["median"].item(0) * first / last], color="#7f7f7f", linewidth=0.6, zorder=0
        )
