"""A finished sweep as a table: a row a simulation, with its place on the axes and what it has learned.

An axis is any field of the condition, as `partition.alpha`, `commit.variance.threshold` (an entry of a list by its `type`)
or `server_opt.type`; it is read from the resolved condition, so points of a list have axes as those of a grid have.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from flame.analysis.finished import by_fingerprint
from flame.analysis.learned import Learned
from flame.config.condition import Condition
from flame.config.errors import ConfigError, nearest
from flame.config.experiments import Experiments
from flame.config.fingerprint import run_fp
from flame.telemetry.reader import TelemetryError
from flame.telemetry.rundir import RunDir

MEASURES = ("sustained", "peak", "loss_drop", "time_to", "passes_to", "bytes_to")
"""What can be laid over the axes; `_to` needs a target accuracy."""


def swept(registry: Experiments, name: str, folder: Path, axes: Sequence[str], measure: str, target: float | None = None) -> pl.DataFrame:
    """A row a simulation: one column an axis, baseline, seed, and `value`, null where it has none. Raises ConfigError."""
    there = by_fingerprint(folder)
    rows: list[dict[str, Any]] = []
    for _, resolved in registry.swept(name):
        condition = resolved.condition
        run = there.get(run_fp(condition))
        value = None if run is None else _measured(_read(run, name), measure, target)
        place = {axis: field(condition, axis) for axis in axes}
        rows.append(place | {"baseline": condition.baseline, "seed": condition.seed, "run": run.label if run else None, "value": value})
    table = pl.DataFrame(rows, infer_schema_length=None).with_columns(pl.col("value").cast(pl.Float64), pl.col("run").cast(pl.String))
    if table["run"].null_count() == table.height:
        raise ConfigError(f"none of the {table.height} simulations of sweep `{name}` is in `{folder}`", f"run it: `flame sweep {name}`")
    return table


def cells(table: pl.DataFrame, axes: Sequence[str]) -> pl.DataFrame:
    """A row a place: how many seeds have a value (`n` of `of`), mean, low and high; null where one of them has none."""
    value = pl.col("value")
    whole = value.is_not_null().all()
    return (
        table.group_by(axes, maintain_order=True)
        .agg(n=value.count(), of=pl.len(), mean=pl.when(whole).then(value.mean()), low=value.min(), high=value.max())
        .sort(axes)
    )


def field(condition: Condition, path: str) -> Any:
    """The value of a field. Raises ConfigError where the condition has none of that name."""
    value: Any = condition.model_dump(mode="json")
    for number, key in enumerate(keys := path.split(".")):
        options = {entry["type"]: entry for entry in value} if isinstance(value, list) else value
        if not isinstance(options, dict) or key not in options:
            known = sorted(options) if isinstance(options, dict) else []
            listed = f"{nearest(key, known)}there are {', '.join(known)}" if known else f"`{'.'.join(keys[:number])}` is the whole path"
            raise ConfigError(f"the condition has no field `{path}`", listed)
        value = options[key]
    return value


def _read(run: RunDir, sweep: str) -> Learned:
    try:
        return Learned(run)
    except TelemetryError as error:
        raise ConfigError(f"`{run.label}`: {error}", f"take that run away, and run it again: `flame sweep {sweep}`") from None


def _measured(learned: Learned, measure: str, target: float | None) -> float | None:
    match measure:
        case "sustained":
            return learned.sustained()
        case "peak":
            return learned.peak()
        case "loss_drop":
            return learned.loss_drop()
    if target is None:
        raise ConfigError(f"`{measure}` needs a target accuracy", "give `target: 0.8`")
    stamp, spent = learned.reached(target), learned.cost_to(target)
    return {"time_to": None if stamp is None else stamp / 1e9, "passes_to": spent.passes, "bytes_to": spent.both}[measure]
