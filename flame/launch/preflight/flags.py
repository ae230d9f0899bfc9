"""From flags to launch objects: patches of the condition, and the worlds that it is run in."""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from flame.config.errors import ConfigError, explain
from flame.config.layers import Patch
from flame.config.world import World
from flame.launch.preflight.stopping import stopping

FIELDS = {
    "trainers": "trainers", "agg_goal": "goal", "concurrency": "concurrency", "delays": "delays.values", "delay_factor": "delays.factor",
    "max_runtime": "stop.runtime_s", "max_data_id": "stop.commits",
    "var_stopping_policy": "commit", "var_threshold": "commit.variance.threshold", "max_iter_per_data_id": "commit.cap.max",
    "partition": "partition.type", "avail_trace": "availability.trace", "trace_time_scale": "availability.time_scale",
    "agg_rate_type": "rate.type", "target_acc": "stop.target.accuracy", "converge_window": "stop.target.window",
    "stall_window_s": "stop.stall.window_s", "stall_window_h": "stop.stall.window_s", "stall_on": "stop.stall.on",
    "stall_min_delta": "stop.stall.min_delta", "loss_min_rel_delta": "stop.stall.loss_min_rel_delta",
}  # fmt: skip
"""Flags that patch one field, and which; in this order."""
ALIKE = [1.0]
"""`--delays off`: no trainer is slower than another. A delay of 0 would leave nothing to order updates by."""
ONLY_SIM, ONLY_REAL = ("pool", "wire", "latency", "draw"), ("broker", "broker_user", "broker_ca", "workers", "remote", "pin")
CARRYING = (*ONLY_REAL, *ONLY_SIM, "device", "prefix_cache", "level", "blobs", "checkpoint")
"""Flags that say how it is carried out."""


def patches(fields: Mapping[str, Any], sets: Sequence[str]) -> list[Patch]:
    """Of the flags that were given, then of each `--set`, which comes last and wins."""
    given = {name: fields[name] for name in FIELDS if fields.get(name) is not None}
    if "stall_window_s" in given and "stall_window_h" in given:
        raise ConfigError("`--stall-window-s` and `--stall-window-h` say the same in two ways", "give one of them")
    named = [_patch(name, value) for name, value in given.items() if (name, value) != ("delays", "on")]
    return [*named, *(Patch.parse(text) for text in sets)]


def _patch(name: str, value: Any) -> Patch:
    """What the flag `name` does to its field. `--delays on` does nothing: on is what the run-set says."""
    flag = f"{_flag(name)} {value}"
    match name:
        case "delays":
            value = ALIKE
        case "stall_window_h":
            value = value * 3600
        case "var_stopping_policy":
            value = stopping(value, flag)
    return Patch(tuple(FIELDS[name].split(".")), value, flag)


def _flag(name: str) -> str:
    """As it is typed."""
    return f"--{name.replace('_', '-')}"


def worlds(mode: str, carrying: Mapping[str, Any], typed: Collection[str] = ()) -> list[World]:
    """The worlds of a mode, sim first: it is the quicker one to find a fault.

    typed: the flags that somebody gave. Raises ConfigError for a wrong one, and for one that would do nothing.
    """
    kinds = {"sim": ["sim"], "real": ["real"], "both": ["sim", "real"]}[mode]
    for name in (*ONLY_REAL, *ONLY_SIM):
        kind = "real" if name in ONLY_REAL else "sim"
        if name in typed and kind not in kinds:
            raise ConfigError(
                f"`{_flag(name)} {carrying[name]}` says nothing to `--mode {mode}`: it is of a {kind} run",
                f"drop it, or give `--mode {kind}` or `--mode both`",
            )
    return [_world(kind, carrying) for kind in kinds]


def _world(kind: str, carrying: Mapping[str, Any]) -> World:
    foreign = ONLY_REAL if kind == "sim" else ONLY_SIM
    plain = {"kind": kind} | {name: value for name, value in carrying.items() if name not in foreign}
    try:
        return World.model_validate_json(json.dumps(plain), strict=True)
    except ValidationError as error:
        raise explain(error, World, plain, lambda place: f" (`{_flag(place[0])}`)" if place else "") from None


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
