"""A finished `flame sweep`: what was learned over two axes, as a heat map with values, or as lines.

Axes are fields of the condition, as `partition.alpha` or `server_opt.type`. A cell is the mean over seeds. A place whose
simulations aren't all there, or that never reached the target in one of them, is hatched: no mean is made of some seeds.
"""

from typing import Any, Literal

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from pydantic import model_validator

from flame.analysis.swept import cells, swept
from flame.config.errors import ConfigError
from flame.figures.canvas import legend_above, panel, whiskers
from flame.figures.families.family import Family
from flame.figures.looks import SPARE
from flame.figures.scene import Picture, Scene
from flame.figures.units import QUANTITIES, number

WORDS = {
    "sustained": "sustained accuracy (fraction)", "peak": "peak accuracy (fraction)",
    "loss_drop": "loss drop (nats)",
}  # fmt: skip
COSTS = {"time_to": "time", "passes_to": "passes", "bytes_to": "bytes"}


class Sweep(Family):
    """x, y: axes. z: what is shown. kind: a map, or a line for each y. x_label, y_label: instead of the fields' names."""

    family: Literal["sweep"] = "sweep"
    sweep: str
    x: str
    y: str
    z: Literal["sustained", "peak", "loss_drop", "time_to", "passes_to", "bytes_to"] = "sustained"
    kind: Literal["map", "lines"] = "map"
    x_label: str | None = None
    y_label: str | None = None

    @model_validator(mode="after")
    def _two_axes(self) -> "Sweep":
        if self.x == self.y:
            raise ValueError(f"`x` and `y` are both `{self.x}`; give two fields")
        if self.arms is not None:
            raise ValueError("a sweep is drawn from its own simulations, not from `arms`; take `arms` away")
        return self

    @property
    def of_arms(self) -> bool:
        """Whether it is drawn from arms, and not from a sweep."""
        return False

    @property
    def needs_target(self) -> bool:
        """Whether nothing can be drawn without a target accuracy."""
        return self.z in COSTS

    def draw(self, scene: Scene) -> Picture:
        """Draw it."""
        if scene.registry is None or scene.folder is None:
            raise ConfigError("a sweep needs the file that has it and the folder of its runs", "give `experiments:` and `runs:`")
        runs = swept(scene.registry, self.sweep, scene.folder, [self.x, self.y], self.z, scene.target)
        self._one_baseline(runs)
        table = cells(runs, [self.x, self.y])
        size, label = self._scale(table, scene.target)
        figure, axes = panel(2.5)
        if self.kind == "map":
            image = self._map(axes, table, size)
            figure.colorbar(image, ax=axes, label=label)
        else:
            self._lines(axes, table, size)
            axes.set_ylabel(label)
            legend_above(figure, axes)
        axes.set_xlabel(self.x_label or f"{self.x} (as set)")
        there, all_of = int(table["n"].sum()), int(table["of"].sum())
        told = f"sweep {self.sweep}: mean over {_seeds(table)}; {there} of {all_of} simulations have a value"
        return Picture(figure, told + ("; bands or whiskers: lowest to highest" if self.kind == "lines" else "; hatched: not all of them"))

    def _one_baseline(self, runs: pl.DataFrame) -> None:
        names = runs["baseline"].unique().sort().to_list()
        if len(names) > 1:
            raise ConfigError(f"sweep `{self.sweep}` has several baselines: {', '.join(names)}", "give it `only: [...]` with one of them")
        most = runs.group_by(self.x, self.y, "seed").len()["len"].max()
        if most != 1:
            raise ConfigError(
                f"`{self.x}` and `{self.y}` don't tell the points of sweep `{self.sweep}` apart",
                "choose the axes on which it has several values",
            )

    def _scale(self, table: pl.DataFrame, target: float | None) -> tuple[float, str]:
        if self.z not in COSTS:
            return 1.0, WORDS[self.z]
        quantity = QUANTITIES[COSTS[self.z]]
        size, unit = quantity.scale(table["mean"].drop_nulls().to_list())
        return size, f"{quantity.words} to {target:g} ({unit})"

    def _map(self, axes: Axes, table: pl.DataFrame, size: float) -> Any:
        columns, rows = (table[axis].unique().sort().to_list() for axis in (self.x, self.y))
        grid = np.full((len(rows), len(columns)), np.nan)
        for x, y, mean in table.select(self.x, self.y, "mean").iter_rows():
            grid[rows.index(y), columns.index(x)] = np.nan if mean is None else mean / size
        image = axes.imshow(grid, cmap="cividis", origin="lower", aspect="auto")
        middle = (np.nanmin(grid) + np.nanmax(grid)) / 2 if np.isfinite(grid).any() else 0.0
        for (row, column), value in np.ndenumerate(grid):
            if np.isnan(value):
                axes.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, fill=False, hatch="////", edgecolor="#7f7f7f", linewidth=0))
            else:
                axes.text(column, row, _digits(value), ha="center", va="center", fontsize=7, color="white" if value < middle else "black")
        axes.set_xticks(range(len(columns)), [_told(value) for value in columns])
        axes.set_yticks(range(len(rows)), [_told(value) for value in rows])
        axes.set_ylabel(self.y_label or f"{self.y} (as set)")
        axes.grid(visible=False)
        return image

    def _lines(self, axes: Axes, table: pl.DataFrame, size: float) -> None:
        """A line with a band for each value of y; where x is no number, points with whiskers at even places."""
        columns, rows = (table[axis].unique().sort().to_list() for axis in (self.x, self.y))
        numeric = table[self.x].dtype.is_numeric()
        for number_of, (look, row) in enumerate(zip(SPARE, rows, strict=False)):
            held = table.filter((pl.col(self.y) == row) & pl.col("mean").is_not_null()).sort(self.x)
            mean, low, high = (held[name].to_numpy() / size for name in ("mean", "low", "high"))
            form: dict[str, Any] = {"color": look.colour, "marker": look.marker, "label": f"{self.y_label or self.y}: {_told(row)}"}
            if numeric:
                axes.fill_between(held[self.x].to_numpy(), low, high, color=look.colour, alpha=0.18, linewidth=0)
                axes.plot(held[self.x].to_numpy(), mean, linestyle=look.line, **form)
            else:
                places = np.array([columns.index(name) for name in held[self.x]]) + 0.12 * (number_of - (len(rows) - 1) / 2)
                axes.errorbar(places, mean, whiskers(mean, low, high), linestyle="", capsize=2, **form)
        if numeric and min(columns) > 0 and max(columns) / min(columns) > 20:
            axes.set_xscale("log")
        if not numeric:
            axes.set_xticks(range(len(columns)), [_told(name) for name in columns])
            axes.set_xlim(-0.5, len(columns) - 0.5)


def _digits(value: float) -> str:
    """Three digits that count, zeros among them: cells are compared with each other."""
    return number(value) if abs(value) >= 100 else f"{value:#.3g}"


def _told(value: Any) -> str:
    return f"{value:g}" if isinstance(value, int | float) and not isinstance(value, bool) else str(value)


def _seeds(table: pl.DataFrame) -> str:
    counts = sorted(set(table["of"].to_list()))
    return f"n = {' or '.join(str(count) for count in counts)} seeds"
