"""Stacked bars, a row an arm: where trainers' time went, and what kinds of bytes travelled.

Parts are told apart by grey and hatch alone, so colour stays with the arms' names elsewhere.
"""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Literal

from matplotlib.axes import Axes

from flame.analysis.traffic import by_kind
from flame.analysis.utilisation import SHARES, overall, utilisation
from flame.config.errors import ConfigError
from flame.figures.canvas import legend_above, panel
from flame.figures.families.family import Family
from flame.figures.looks import HATCHES
from flame.figures.scene import Picture, Scene, Shown, seeds_told
from flame.figures.units import QUANTITIES, number

FILLS = ("#4d4d4d", "#d9d9d9", "#ffffff", "#969696", "#efefef", "#bdbdbd")
WIDE = 0.12
"""The share of the widest row from which on a part has its value written in it."""

Row = tuple[str, Mapping[str, float]]
"""A name, and the length of each part."""


def draw_rows(axes: Axes, rows: Sequence[Row], parts: Sequence[str], shown: str = "{}") -> None:
    """One row a name, the first at the top. shown: how a value is written."""
    most = max((sum(values.values()) for _, values in rows), default=1.0) or 1.0
    for number_of, part in enumerate(parts):
        lengths = [values.get(part, 0.0) for _, values in rows]
        lefts = [sum(values.get(before, 0.0) for before in parts[:number_of]) for _, values in rows]
        fill = FILLS[number_of % len(FILLS)]
        hatch = HATCHES[number_of % len(HATCHES)]
        axes.barh(range(len(rows)), lengths, 0.7, lefts, color=fill, hatch=hatch, edgecolor="black", linewidth=0.5, label=part)
        for place, (length, left) in enumerate(zip(lengths, lefts, strict=True)):
            if length > WIDE * most:
                box = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none", "alpha": 0.85}
                axes.text(left + length / 2, place, shown.format(number(length)), ha="center", va="center", fontsize=6, bbox=box)
    axes.set_yticks(range(len(rows)), [name for name, _ in rows])
    axes.invert_yaxis()
    axes.set_xlim(0, most * 1.02)
    axes.grid(visible=False, axis="y")


class Utilisation(Family):
    """What trainers' time went into. One arm: a row a trainer; several: a row an arm, the mean over its trainers and seeds."""

    family: Literal["utilisation"] = "utilisation"

    @property
    def needs_full(self) -> bool:
        """Whether it is drawn from records of telemetry `full`."""
        return True

    def draw(self, scene: Scene) -> Picture:
        """Draw it."""
        rows = _per_trainer(scene.arms[0]) if len(scene.arms) == 1 else [(arm.label, _mean_shares(arm)) for arm in scene.arms]
        figure, axes = panel(0.8 + 0.22 * max(3, len(rows)))
        draw_rows(axes, [(name, {part: 100 * share for part, share in values.items()}) for name, values in rows], SHARES)
        axes.set_xlabel("share of virtual time (%)")
        if len(scene.arms) == 1:
            axes.set_ylabel("trainer (name)")
        legend_above(figure, axes, 3)
        who = f"trainers of {scene.arms[0].name}" if len(scene.arms) == 1 else "mean over trainers"
        return Picture(figure, f"{who}; {seeds_told(scene.arms)}; away: by trace or not there, and not computing")


def _mean_shares(arm: Shown) -> dict[str, float]:
    per_run = [overall(utilisation(run)) for run in arm.runs]
    return {part: fmean(shares.get(part, 0.0) for shares in per_run) for part in SHARES}


def _per_trainer(arm: Shown) -> list[Row]:
    tables = [utilisation(run) for run in arm.runs]
    nodes = tables[0]["trainer"].to_list()
    return [(node, {part: fmean(float(table[part][place]) for table in tables) for part in SHARES}) for place, node in enumerate(nodes)]


class Bytes(Family):
    """What travelled, by direction and kind of payload; mean over seeds."""

    family: Literal["bytes"] = "bytes"

    @property
    def needs_full(self) -> bool:
        """Whether it is drawn from records of telemetry `full`."""
        return True

    def draw(self, scene: Scene) -> Picture:
        """Draw it."""
        rows = [(arm.label, _bytes(arm)) for arm in scene.arms]
        parts = sorted({part for _, values in rows for part in values})
        if not parts:
            raise ConfigError("these runs sent nothing that was counted", "give runs with telemetry `full` (`--level full`)")
        size, unit = QUANTITIES["bytes"].scale([sum(values.values()) for _, values in rows])
        figure, axes = panel(0.9 + 0.26 * max(2, len(rows)))
        draw_rows(axes, [(name, {part: value / size for part, value in values.items()}) for name, values in rows], parts)
        for place, (_, values) in enumerate(rows):
            total = sum(values.values()) / size
            axes.annotate(number(total), (total, place), xytext=(2, 0), textcoords="offset points", va="center", fontsize=6)
        axes.set_xlim(0, 1.14 * max(sum(values.values()) for _, values in rows) / size)
        axes.set_xlabel(f"bytes of a whole run ({unit})")
        legend_above(figure, axes, 3)
        return Picture(
            figure, f"bytes by direction and kind of payload, mean over {seeds_told(scene.arms)}; at the end of a bar: its total"
        )


def _bytes(arm: Shown) -> dict[str, float]:
    """`down full` -> bytes, mean over the seeds."""
    found: dict[str, float] = {}
    for run in arm.runs:
        for way, kind, total in by_kind(run.run).select("direction", "payload", "bytes").iter_rows():
            found[f"{way} {kind}"] = found.get(f"{way} {kind}", 0.0) + total / len(arm.runs)
    return found
