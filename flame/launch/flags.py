"""From flags to launch objects: patches of the condition, and the worlds that it is run in."""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from pydantic import ValidationError

from flame.config.errors import ConfigError, explain
from flame.config.layers import Patch
from flame.config.world import World

FIELDS = {
    "trainers": "trainers", "agg_goal": "goal", "concurrency": "concurrency", "delay_factor": "delays.factor",
    "max_runtime": "stop.runtime_s", "var_threshold": "commit.variance.threshold", "max_iter_per_data_id": "commit.cap.max",
    "partition": "partition.type", "avail_trace": "availability.trace", "trace_time_scale": "availability.time_scale",
    "agg_rate_type": "rate.type", "target_acc": "stop.target.accuracy", "converge_window": "stop.target.window",
    "stall_window_s": "stop.stall.window_s", "stall_on": "stop.stall.on", "stall_min_delta": "stop.stall.min_delta",
    "loss_min_rel_delta": "stop.stall.loss_min_rel_delta",
}  # fmt: skip
"""Flags that patch one field, and which."""
ONLY_SIM, ONLY_REAL = ("pool", "wire", "latency", "draw"), ("broker", "broker_user", "broker_ca", "workers", "remote")
CARRYING = (*ONLY_REAL, *ONLY_SIM, "device", "prefix_cache", "level", "blobs")
"""Flags that say how it is carried out."""


def patches(fields: Mapping[str, Any], sets: Sequence[str]) -> list[Patch]:
    """Of the flags that were given, then of each `--set`, which comes last and wins."""
    given = [(name, value) for name, value in fields.items() if value is not None]
    named = [Patch(tuple(FIELDS[name].split(".")), value, f"--{name.replace('_', '-')} {value}") for name, value in given]
    return [*named, *(Patch.parse(text) for text in sets)]


def worlds(mode: str, carrying: Mapping[str, Any]) -> list[World]:
    """The worlds of a mode, sim first: it is the quicker one to find a fault. Raises ConfigError for a wrong option."""
    kinds = {"sim": ["sim"], "real": ["real"], "both": ["sim", "real"]}[mode]
    return [_world(kind, carrying) for kind in kinds]


def _world(kind: str, carrying: Mapping[str, Any]) -> World:
    foreign = ONLY_REAL if kind == "sim" else ONLY_SIM
    plain = {"kind": kind} | {name: value for name, value in carrying.items() if name not in foreign}
    try:
        return World.model_validate_json(orjson.dumps(plain), strict=True)
    except ValidationError as error:
        raise explain(error, World, plain, lambda place: f" (`--{place[0].replace(chr(95), chr(45))}`)" if place else "") from None


def names(text: str | None) -> list[str] | None:
    """`a,b` as a list; None when nothing was given."""
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",")]
    if not all(parts):
        raise ConfigError(f"`--only {text}` holds an empty name", "write it like `--only fwdllm,backprop`")
    return parts


def one_name(first: str | None, second: str | None, kind: str = "run-set") -> str:
    """The name of a run-set (or of another kind of thing), given once, or twice and the same."""
    if first and second and first != second:
        raise ConfigError(f"two {kind}s are given, `{first}` and `{second}`", "give one")
    return first or second or ""
