"""A 2 x 2 ablation: two parts of a system, each off and on, as one ramp from light (neither) to dark (both).

Arms stand in the order neither, first alone, second alone, both.
"""

from statistics import fmean
from typing import Any, Literal

from matplotlib import colormaps
from matplotlib.patches import Patch

from flame.analysis.learned import Learned
from flame.analysis.productivity import productivity
from flame.config.errors import ConfigError
from flame.figures.canvas import panel
from flame.figures.families.bars import WHISKERS, whisker
from flame.figures.families.family import Family
from flame.figures.scene import Picture, Scene, seeds_told
from flame.figures.units import QUANTITIES, Quantity, number

RAMP = (0.2, 0.45, 0.7, 0.95)
PLACES = (0.0, 1.0, 2.5, 3.5)
ACCURACY = Quantity("", "accuracy", ((1.0, "fraction"),))


class Ablation(Family):
    """parts: names of the two. measure: sustained accuracy with its peak, or what the target has cost, or the loss drop per pass."""

    family: Literal["ablation"] = "ablation"
    parts: tuple[str, str]
    measure: Literal["sustained", "time", "passes", "bytes", "per_passes"] = "sustained"

    @property
    def needs_target(self) -> bool:
        """Whether nothing can be drawn without a target accuracy."""
        return self.measure in QUANTITIES

    @property
    def needs_full(self) -> bool:
        """Whether it is drawn from records of telemetry `full`."""
        return self.measure in ("passes", "bytes", "per_passes")

    def draw(self, scene: Scene) -> Picture:
        """Draw it."""
        if len(scene.arms) != 4:
            raise ConfigError(f"an ablation has four arms, this one {len(scene.arms)}", "list them: `arms: [neither, first, second, both]`")
        values = [[self._value(run, scene.target) for run in arm.runs] for arm in scene.arms]
        known = [[value for value in each if value is not None] for each in values]
        size, label = self._scale([value for each in known for value in each], scene.target)
        figure, axes = panel(2.4)
        for place, shade, each, arm in zip(PLACES, RAMP, known, scene.arms, strict=True):
            if each:
                _bar(axes, place, colormaps["Blues"](shade), [value / size for value in each], len(arm.runs))
            else:
                axes.annotate("never", (place, 0), xytext=(0, 2), textcoords="offset points", ha="center", fontsize=6)
        if self.measure == "sustained":
            self._peaks(axes, scene)
        self._frame(axes, known, size)
        axes.set_ylabel(label)
        names = ", ".join(arm.name for arm in scene.arms)
        stars = "; star: mean of the peaks" if self.measure == "sustained" else ""
        return Picture(figure, f"{names}, from light to dark; {seeds_told(scene.arms)}; {WHISKERS}{stars}")

    def _value(self, run: Learned, target: float | None) -> float | None:
        match self.measure:
            case "sustained":
                return run.sustained()
            case "per_passes":
                return productivity(run).per_million_passes
        stamp = run.reached(target or 0.0)
        spent = run.cost_to(target or 0.0)
        return {"time": None if stamp is None else stamp / 1e9, "passes": spent.passes, "bytes": spent.both}[self.measure]

    def _scale(self, values: list[float], target: float | None) -> tuple[float, str]:
        if self.measure == "sustained":
            return 1.0, "sustained accuracy (fraction)"
        if self.measure == "per_passes":
            return 1.0, r"loss drop (nats / $10^6$ forward passes)"
        quantity = QUANTITIES[self.measure]
        size, unit = quantity.scale(values)
        return size, f"{quantity.words} to {target:g} ({unit})"

    def _peaks(self, axes: Any, scene: Scene) -> None:
        for place, arm in zip(PLACES, scene.arms, strict=True):
            peaks = [peak for run in arm.runs if (peak := run.peak()) is not None]
            if peaks:
                axes.plot(place, fmean(peaks), "*", color="white", markeredgecolor="black", markeredgewidth=0.6, markersize=7, zorder=4)

    def _frame(self, axes: Any, known: list[list[float]], size: float) -> None:
        values = [value / size for each in known for value in each]
        axes.set_ylim(0, 1.22 * max(values, default=1.0))
        first, second = self.parts
        axes.set_xticks(PLACES, [f"no {first}", first] * 2, fontsize=6)
        for middle, told in ((0.5, f"without {second}"), (3.0, f"with {second}")):
            axes.annotate(told, (middle, 0), xycoords=("data", "axes fraction"), xytext=(0, -22), textcoords="offset points", ha="center")
        axes.set_xlabel("parts of the system (off and on)", labelpad=14)
        axes.grid(visible=False, axis="x")
        shades = [
            Patch(facecolor=colormaps["Blues"](RAMP[0]), edgecolor="black"),
            Patch(facecolor=colormaps["Blues"](RAMP[-1]), edgecolor="black"),
        ]
        axes.legend(shades, ["neither", "both"], loc="upper left", ncols=2)


def _bar(axes: Any, place: float, colour: Any, values: list[float], seeds: int) -> None:
    """A bar with its value in it, and in how many seeds there is one, where not in all."""
    mean, low, high = fmean(values), min(values), max(values)
    axes.bar(place, mean, 0.9, color=colour, edgecolor="black", linewidth=0.6)
    if len(values) > 1:
        whisker(axes, place, mean, low, high)
    part = f"\n{len(values)} of {seeds}" if len(values) < seeds else ""
    box = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none", "alpha": 0.85}
    axes.annotate(number(mean) + part, (place, 0), xytext=(0, 3), textcoords="offset points", ha="center", fontsize=6, bbox=box)
