"""Client sessions: how long trainers could be used at a time, or how many uploads a session gave.

The curve of an arm is the share of its sessions that are at most that long. Sessions that the start or the end of the
run cut are left out of lengths, which nobody knows, and counted in the caption.
"""

from typing import Literal

import numpy as np
import polars as pl

from flame.analysis.sessions import sessions
from flame.config.errors import ConfigError
from flame.figures.canvas import legend_above, panel
from flame.figures.families.family import Family
from flame.figures.scene import Picture, Scene, Shown, seeds_told
from flame.figures.units import SECONDS, Quantity

LENGTH = Quantity("length_s", "length of a session, virtual time", SECONDS)
WIDE = 100
"""From which ratio of the longest to the shortest on lengths stand on a logarithmic axis."""


class Sessions(Family):
    """of: what is counted."""

    family: Literal["sessions"] = "sessions"
    of: Literal["length", "uploads"] = "length"

    @property
    def needs_full(self) -> bool:
        """Whether it is drawn from records of telemetry `full`."""
        return True

    def draw(self, scene: Scene) -> Picture:
        """Draw it."""
        tables = {arm.key: pl.concat([sessions(run) for run in arm.runs]) for arm in scene.arms}
        shown = {key: table.filter(~pl.col("cut")) if self.of == "length" else table for key, table in tables.items()}
        if not any(table.height for table in shown.values()):
            raise ConfigError("no session of these runs began and ended within them", "give runs with availability, or `of: uploads`")
        column = "length_s" if self.of == "length" else "uploads"
        longest = [float(table[column].max()) for table in shown.values() if table.height]  # type: ignore[arg-type]
        size, unit = LENGTH.scale(longest) if self.of == "length" else (1.0, "count")
        figure, axes = panel()
        for arm in scene.arms:
            values = np.sort(shown[arm.key][column].to_numpy()) / size
            axes.step(
                values, np.arange(1, len(values) + 1) / max(1, len(values)), where="post", color=arm.look.colour, linestyle=arm.look.line,
                linewidth=arm.look.width, marker=arm.look.marker, markevery=max(1, len(values) // 6), label=_label(arm, len(values)),
            )  # fmt: skip
        if self.of == "length" and max(longest) > WIDE * min(float(table[column].min()) for table in shown.values() if table.height):  # type: ignore[arg-type]
            axes.set_xscale("log")
        axes.set_ylim(0, 1.02)
        axes.set_xlabel(LENGTH.label(unit) if self.of == "length" else "accepted uploads of a session (count)")
        axes.set_ylabel("share of sessions (fraction)")
        legend_above(figure, axes, 1)
        held = sum(table.height for table in tables.values())
        left = held - sum(table.height for table in shown.values())
        told = f"; {left} of {held} sessions were cut by the run and are left out" if self.of == "length" else ""
        return Picture(figure, f"client sessions, {seeds_told(scene.arms)}{told}")


def _label(arm: Shown, count: int) -> str:
    return f"{arm.name} ({count} sessions, n={len(arm.runs)})"
