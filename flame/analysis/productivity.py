"""What learning has cost: the fall of the loss, per million forward passes, per GB, per compute hour.

The loss falls from the mean of the first evaluations to that of the last (`curve.loss_drop`); costs are those of the
whole run. A pass and a byte are counted, an hour is measured: on which device, it says.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from flame.analysis.learned import Learned

HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class Productivity:
    """loss_drop in nats. per_gb: 10^9 bytes, both ways. per_compute_h: measured hours on `device`, all trainers together."""

    loss_drop: float | None
    per_million_passes: float | None
    per_gb: float | None
    per_compute_h: float | None
    device: str


def productivity(learned: Learned, wide: int = 10) -> Productivity:
    """What a run has got for what it spent."""
    drop, spent = learned.loss_drop(wide), learned.spent()
    return Productivity(
        drop,
        ratio(drop, _over(spent.passes, 1e6)),
        ratio(drop, _over(spent.both, 1e9)),
        ratio(drop, _over(spent.compute_s, HOUR)),
        learned.device,
    )


def ratio(one: float | None, other: float | None) -> float | None:
    """one / other; None where either is absent, or nothing was spent."""
    return one / other if one is not None and other else None


def _over(value: float | None, unit: float) -> float | None:
    return None if value is None else value / unit


def cost_to(learned: Learned, targets: Sequence[float]) -> pl.DataFrame:
    """A row a target accuracy: time_s, passes, bytes, compute_h when it was first reached; null where it never was."""
    rows = []
    for target in targets:
        at, spent = learned.reached(target), learned.cost_to(target)
        time_s, hours = _over(at, 1e9), _over(spent.compute_s, HOUR)
        rows.append({"target": target, "time_s": time_s, "passes": spent.passes, "bytes": spent.both, "compute_h": hours})
    kinds = {"target": pl.Float64(), "time_s": pl.Float64(), "passes": pl.Int64(), "bytes": pl.Int64(), "compute_h": pl.Float64()}
    return pl.DataFrame(rows, schema=kinds)
