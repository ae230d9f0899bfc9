"""Quantities that stand on axes: which column holds one, what it is called, and in which unit it is best read."""

from collections.abc import Sequence
from dataclasses import dataclass

Scale = tuple[float, str]
"""From which value on, in the column's own unit, and the name of the unit; the value is also its size."""

SECONDS: tuple[Scale, ...] = ((1.0, "s"), (60.0, "min"), (3600.0, "h"))
BYTES: tuple[Scale, ...] = ((1.0, "B"), (1e3, "kB"), (1e6, "MB"), (1e9, "GB"))
COUNT: tuple[Scale, ...] = ((1.0, "count"), (1e3, "thousands"), (1e6, "millions"))
ENOUGH = 3.0
"""A unit is taken when so many of it are shown."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """column: of a curve. words: on the axis, before the unit."""

    column: str
    words: str
    scales: tuple[Scale, ...]

    def scale(self, values: Sequence[float]) -> Scale:
        """The unit in which the largest of `values` is read best."""
        most = max(values, default=0.0)
        return next((scale for scale in reversed(self.scales) if most >= ENOUGH * scale[0]), self.scales[0])

    def label(self, unit: str) -> str:
        """What stands on the axis."""
        return f"{self.words} ({unit})"


QUANTITIES = {
    "time": Quantity("time_s", "virtual time", SECONDS),
    "wall": Quantity("wall_s", "wall time", SECONDS),
    "commits": Quantity("commits", "commits", (COUNT[0],)),
    "uploads": Quantity("uploads", "accepted uploads", COUNT[:2]),
    "passes": Quantity("passes", "forward passes", COUNT),
    "bytes": Quantity("bytes", "bytes both ways", BYTES),
    "compute": Quantity("compute_s", "measured compute time", SECONDS),
}
MEASURES = {
    "accuracy": Quantity("accuracy", "accuracy", ((1.0, "fraction"),)),
    "loss": Quantity("loss", "loss", ((1.0, "nats"),)),
}


def number(value: float) -> str:
    """Three digits that count."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
