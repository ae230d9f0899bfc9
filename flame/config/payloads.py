"""Which payloads a condition may ask for: what can't be rebuilt at the other end is refused before anything runs."""

from typing import TYPE_CHECKING

from flame.policies.perturb import BestOf, Guided, Split
from flame.policies.server_opt import stateless

if TYPE_CHECKING:
    from flame.config.condition import Condition

MOST_PROBES = 256
"""A choice travels in one byte."""


def check_payload(condition: "Condition") -> None:
    """Raises ValueError, naming field, value and remedy."""
    if condition.payload.up == "seeds":
        _check_seeds(condition)
    if condition.payload.down == "replay":
        _check_replay(condition)


def _check_seeds(condition: "Condition") -> None:
    if condition.estimator.type == "backprop":
        raise ValueError(
            "`payload.up: seeds` rebuilds an upload from perturbations, and `estimator: backprop` makes none; "
            "use `payload.up: dense`, or `estimator: forward_ad`"
        )
    if condition.task == "surrogate":
        raise ValueError("`payload.up: seeds` needs probes of `perturb`, and `task: surrogate` has its own; use `payload.up: dense`")
    perturb = condition.perturb.of if isinstance(condition.perturb, Split) else condition.perturb
    probes = perturb.probes if isinstance(perturb, BestOf) else perturb.candidates if isinstance(perturb, Guided) else 1
    if probes > MOST_PROBES:
        raise ValueError(
            f"`payload.up: seeds` sends the number of the chosen probe in a byte, and `perturb` has {probes} to choose from; "
            f"give at most {MOST_PROBES}, or use `payload.up: dense`"
        )


def _check_replay(condition: "Condition") -> None:
    if condition.payload.up != "seeds":
        raise ValueError(
            f"`payload.down: replay` sends what uploads were made of, and `payload.up: {condition.payload.up}` doesn't say it; "
            "use `payload.up: seeds`, or `payload.down: once_per_version`"
        )
    if condition.payload.wire_dtype != "f32":
        raise ValueError(
            f"`payload.down: replay` continues exact weights, and `payload.wire_dtype: {condition.payload.wire_dtype}` rounds them; "
            "use `wire_dtype: f32`, or `down: delta`"
        )
    if not stateless(condition.server_opt):
        raise ValueError(
            f"`payload.down: replay` takes the server's steps again, and `server_opt: {condition.server_opt.type}` has a state that "
            "trainers lack; use `sgd`, `trust_ratio` or a `clip` before one of them, or `payload.down: once_per_version`"
        )
