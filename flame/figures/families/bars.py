"""Bars with values, one an arm: what a target accuracy has cost, or what learning has yielded.

A bar is the mean over seeds, its whisker spans the lowest and the highest. An arm that never got there has no bar, and
says so; one that did in some seeds says in how many.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

import numpy as np
from matplotlib.axes import Axes

from flame.analysis.learned import Learned
from flame.analysis.productivity import HOUR, cost_to, productivity
from flame.figures.canvas import panel, whiskers
from flame.figures.families.family import Family
from flame.figures.looks import HATCHES
from flame.figures.scene import Picture, Scene, Shown, seeds_told
from flame.figures.units import QUANTITIES, Quantity, number

Value = float | None


@dataclass(frozen=True, slots=True)
class Bar:
    """One arm's values, one a seed; None where there is none."""

    name: str
    values: Sequence[Value]
    colour: str
    hatch: str

    @property
    def known(self) -> list[float]:
        """Those that are there."""
        return [value for value in self.values if value is not None]


def draw_bars(axes: Axes, bars: Sequence[Bar], size: float, absent: str) -> None:
    """Bars along x, with values over them. size: of the unit. absent: what is written where no seed has a value."""
    top = max((max(bar.known) for bar in bars if bar.known), default=1.0) / size
    for place, bar in enumerate(bars):
        known = [value / size for value in bar.known]
        if known:
            mean, low, high = fmean(known), min(known), max(known)
            axes.bar(place, mean, 0.66, color=bar.colour, hatch=bar.hatch, edgecolor="white" if bar.hatch else bar.colour, linewidth=0.5)
            axes.bar(place, mean, 0.66, fill=False, edgecolor="black", linewidth=0.6)
            if len(known) > 1:
                whisker(axes, place, mean, low, high)
        told = number(fmean(known)) if known else absent
        part = f"\n{len(known)} of {len(bar.values)}" if 0 < len(known) < len(bar.values) else ""
        height = max(known, default=0.0)
        axes.annotate(
            told + part, (place, height), xytext=(0, 2), textcoords="offset points", ha="center", va="bottom", fontsize=6,
            rotation=0 if known else 90,
        )  # fmt: skip
    axes.set_ylim(0, 1.18 * top)
    axes.set_xlim(-0.6 - max(0, 3 - len(bars)) / 2, len(bars) - 0.4 + max(0, 3 - len(bars)) / 2)
    axes.set_xticks(
        range(len(bars)), [bar.name for bar in bars], rotation=20 if len(bars) > 3 else 0, ha="right" if len(bars) > 3 else "center"
    )
    axes.grid(visible=False, axis="x")


def whisker(axes: Axes, place: float, mean: float, low: float, high: float) -> None:
    """From `low` to `high`, seen on dark bars too."""
    for colour, width in (("white", 2.0), ("black", 0.8)):
        axes.errorbar([place], [mean], whiskers(np.array([mean]), low, high), color=colour, linewidth=width, capsize=2, capthick=width)


def bars_of(scene: Scene, values: Sequence[Sequence[Value]]) -> list[Bar]:
    """A bar for each arm; the own system solid, the others hatched."""
    others = iter(HATCHES[1:] * len(scene.arms))
    return [
        Bar(arm.name, each, arm.look.colour, "" if arm.look.own else next(others)) for arm, each in zip(scene.arms, values, strict=True)
    ]


class Bars(Family):
    """What the first evaluation at or over the target has cost."""

    family: Literal["bars"] = "bars"
    cost: Literal["time", "passes", "bytes", "compute"] = "time"

    @property
    def needs_target(self) -> bool:
        """Whether nothing can be drawn without a target accuracy."""
        return True

    @property
    def needs_full(self) -> bool:
        """Whether it is drawn from records of telemetry `full`."""
        return self.cost != "time"

    def draw(self, scene: Scene) -> Picture:
        """Draw it."""
        target = scene.target or 0.0
        column = {"time": "time_s", "passes": "passes", "bytes": "bytes", "compute": "compute_h"}[self.cost]
        factor = HOUR if self.cost == "compute" else 1.0
        values = [[_scaled(cost_to(run, [target])[column].item(), factor) for run in arm.runs] for arm in scene.arms]
        figure, axes = panel()
        quantity = QUANTITIES[self.cost]
        size, unit = quantity.scale([value for each in values for value in each if value is not None])
        draw_bars(axes, bars_of(scene, values), size, "never")
        axes.set_ylabel(f"{_short(quantity, scene.arms)} to {target:g} ({unit})")
        return Picture(figure, f"cost of the first evaluation at {target:g} or over; {seeds_told(scene.arms)}; {WHISKERS}; never: no seed")


WHISKERS = "bar: mean over the seeds that have a value, whisker: lowest to highest"


class ProductivityBars(Family):
    """How far the loss fell for what was spent. per: what; each has an axis of its own."""

    family: Literal["productivity"] = "productivity"
    per: Literal["passes", "gb", "compute_h"] = "passes"
    window: int = 10

    @property
    def needs_full(self) -> bool:
        """Whether it is drawn from records of telemetry `full`."""
        return True

    def draw(self, scene: Scene) -> Picture:
        """Draw it."""
        field = {"passes": "per_million_passes", "gb": "per_gb", "compute_h": "per_compute_h"}[self.per]
        gains = [[productivity(run, self.window) for run in arm.runs] for arm in scene.arms]
        values = [[_positive(getattr(gain, field)) for gain in group] for group in gains]
        figure, axes = panel()
        draw_bars(axes, bars_of(scene, values), 1.0, "none")
        devices = ", ".join(sorted({gain.device for group in gains for gain in group}))
        per = {"passes": r"nats / $10^6$ forward passes", "gb": "nats / GB", "compute_h": f"nats / {devices} hour"}[self.per]
        axes.set_ylabel(f"loss drop ({per})")
        told = f"loss drop: mean of the first {self.window} evaluations less that of the last; none: the loss didn't fall"
        return Picture(figure, f"{told}; {seeds_told(scene.arms)}; {WHISKERS}")


def _positive(value: Value) -> Value:
    return value if value is not None and value > 0 else None


def _scaled(value: Value, factor: float) -> Value:
    return None if value is None else value * factor


def _short(quantity: Quantity, arms: Sequence[Shown]) -> str:
    """What stands on the axis; measured time says on which device."""
    devices = ", ".join(sorted({_device(run) for arm in arms for run in arm.runs}))
    return f"{quantity.words}, {devices}," if quantity.column == "compute_s" else quantity.words


def _device(run: Learned) -> str:
    return run.device
