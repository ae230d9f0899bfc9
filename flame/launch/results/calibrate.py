"""`flame calibrate RUN`: what real runs took beyond their model, as a file that simulations draw from.

Three things are measured, each from records of one clock, so that no two hosts' clocks are compared:

    duration   a trainer's phases from the receipt of an assign to its update     clients.<node>.delay
    hold       the same, beyond what the assign asked for                         latency.hold_s
    legs       arrival at the aggregator beyond the due, less the hold            latency.legs_s
    eval       the release of an evaluation beyond its commit and its charge      latency.eval_s

The file is a registry of devices (`--set delays.registry=FILE`: another condition, whose D are the measured ones) and
a latency law (`--latency FILE`: the same condition, simulated with this machine's lateness). Updates that waited for
an availability trace or for a fault say nothing of the machine, and are left out.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from flame.config.condition import Condition
from flame.config.devices import profiles
from flame.config.errors import ConfigError
from flame.core.time import seconds
from flame.telemetry.rundir import RunDir

STEPS = 200
"""Steps of a law's quantiles: the largest of a few hundred updates still has a place of its own."""
LEAST = 30
"""Updates that a law takes."""
KINDS = ("accepted", "agg_eval", "agg_round", "dispatch", "fault", "lateness", "trainer_round", "withheld")

Array = NDArray[np.float64]
ALWAYS, SOMETIMES = ("queue", "compute", "hold"), ("to_device", "to_host", "encode")
"""Phases of a job that every real run has, and those that its task may not have."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What one or several runs measured. updates: node, took_s, hold_s, legs_s, a row each. evals: seconds beyond the charge."""

    updates: pl.DataFrame
    evals: Array


def calibrated(runs: Sequence[RunDir]) -> dict[str, Any]:
    """The registry that real runs of one condition make. Raises ConfigError for runs that can't."""
    condition = _admitted(runs)
    each = [_measured(run) for run in runs]
    found = Measured(pl.concat([one.updates for one in each]), np.concatenate([one.evals for one in each]))
    if found.updates.height < LEAST:
        raise ConfigError(
            f"{found.updates.height} updates were measured, and a law takes {LEAST}", "calibrate with longer runs, or with several"
        )
    columns = {name: found.updates[name].to_numpy() for name in ("legs_s", "hold_s")}
    return {
        "clients": _clients(condition, found.updates),
        "latency": {
            **{name: _quantiles(values) for name, values in columns.items()},
            **({"eval_s": _quantiles(found.evals)} if found.evals.size else {}),
        },
        "measured": {
            "runs": [run.label for run in runs], "run_fp": runs[0].run_fp, "updates": found.updates.height, "evaluations": found.evals.size,
            "mean_s": {**{name: float(values.mean()) for name, values in columns.items()}, **_mean("eval_s", found.evals)},
        },
    }  # fmt: skip


def _admitted(runs: Sequence[RunDir]) -> Condition:
    """Their condition. Raises ConfigError for a simulation, for runs of several conditions, and for records that aren't there."""
    for run in runs:
        if run.world.kind != "real":
            raise ConfigError(f"`{run.label}` is a {run.world.kind} run, and has nothing to measure", "give a real run")
        if run.run_fp != runs[0].run_fp:
            raise ConfigError(
                f"`{run.label}` and `{runs[0].label}` are of two conditions ({run.run_fp}, {runs[0].run_fp})",
                "calibrate with each by itself, or with replicates: `flame replicate RUN`",
            )
        if run.world.level != "full":
            raise ConfigError(f"`{run.label}` has telemetry level `{run.world.level}`", "run it with `--level full`")
    return runs[0].condition


def _measured(run: RunDir) -> Measured:
    run.telemetry.load(*KINDS)
    frame = run.telemetry.frame
    sent = pl.col("stamp_ns") if run.condition.pacing == "relative" else pl.col("_t_ns")
    first = {kind: frame(kind).unique("id", keep="first") for kind in ("trainer_round", "dispatch", "accepted", "lateness")}
    parts = [
        first["trainer_round"].select("id", "trainer", took_s=_phases()),
        first["dispatch"].select("id", "due_ns", asked_s=(pl.col("due_ns") - sent) / 1e9),
        first["accepted"].select("id", stamp_ns=pl.col("interval_ns").list.last()),
        first["lateness"].select("id", "late_s", released_ns="_t_ns"),
    ]
    each = parts[0]
    for part in parts[1:]:
        each = each.join(part, on="id")
    each = _undisturbed(each.join(frame("withheld"), on="id", how="anti"), frame("fault"), run.condition.limits.grace_s)
    beyond = pl.max_horizontal("late_s", (pl.col("stamp_ns") - pl.col("due_ns")) / 1e9)
    rows = each.sort("id").with_columns(hold_s=(pl.col("took_s") - pl.col("asked_s")).clip(0))
    rows = rows.with_columns(legs_s=(beyond - pl.col("hold_s")).clip(0))
    return Measured(rows.select("trainer", "took_s", "hold_s", "legs_s").drop_nulls(), _evaluations(run))


def _phases() -> pl.Expr:
    """Seconds from the receipt of an assign to its update; null where the phases weren't measured."""
    spans = {name: pl.col("phases").str.json_path_match(f"$.{name}").cast(pl.Float64) for name in (*ALWAYS, *SOMETIMES)}
    return sum((span if name in ALWAYS else span.fill_null(0.0) for name, span in spans.items()), pl.lit(0.0))


def _undisturbed(updates: pl.DataFrame, faults: pl.DataFrame, grace_s: float) -> pl.DataFrame:
    """The updates that waited for no respawn and no reconnection."""
    mended = faults.filter(pl.col("what").is_in(["respawn", "reconnected"]))["_t_ns"].to_numpy()
    begin, end = updates["due_ns"].to_numpy() - seconds(grace_s), updates["released_ns"].to_numpy()
    waited = (mended[None, :] >= begin[:, None]) & (mended[None, :] <= end[:, None])
    return updates.filter(pl.Series(waited.any(axis=1)).not_())


def _evaluations(run: RunDir) -> Array:
    """Seconds from the instant at which each evaluation was due to its release."""
    closes = run.telemetry.frame("agg_round").filter("committed")
    commits = closes.select(version=pl.col("model_version") + 1, closed_ns="_t_ns")
    both = run.telemetry.frame("agg_eval").sort("_seq").join(commits, on="version", how="inner", maintain_order="left")
    late = (both["_t_ns"] - both["closed_ns"]).to_numpy() / 1e9 - run.condition.eval.seconds
    return np.asarray(np.clip(late, 0.0, None))


def _clients(condition: Condition, updates: pl.DataFrame) -> dict[str, Any]:
    """The measured delay of each trainer, times the factor that a registry is divided by; the modelled one of who sent nothing."""
    took = {node: (median, n) for node, median, n in updates.group_by("trainer").agg(pl.col("took_s").median(), n=pl.len()).iter_rows()}
    modelled = {node: profile.delay_ns / 1e9 for node, profile in profiles(condition).items()}
    factor = condition.delays.factor
    return {
        node: {"delay": took.get(node, (delay, 0))[0] * factor, "modelled": delay * factor, "n": took.get(node, (delay, 0))[1]}
        for node, delay in modelled.items()
    }


def _quantiles(values: Array) -> list[float]:
    return [round(float(value), 9) for value in np.quantile(values, np.linspace(0, 1, STEPS + 1))]


def _mean(name: str, values: Array) -> dict[str, float]:
    return {name: float(values.mean())} if values.size else {}
