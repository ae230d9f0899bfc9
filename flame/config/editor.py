"""The JSON schema of experiments.yaml, for editors: every key, its values, and what it means.

A block of a layer is a part of a condition, so nothing in it is required, and a policy may be a bare name, or numbers
alone for the policy that a lower layer names. Whether the layers make a condition together is for `flame run` to say.
"""

from collections.abc import Mapping
from typing import Any

from flame.config.condition import Condition
from flame.config.errors import POLICIES
from flame.config.experiments import BASELINE, RUN_SET, SHARED

Plain = dict[str, Any]

SWEEP: Plain = {
    "about": {"type": "string"}, "run_set": {"type": "string"},
    "grid": {"type": "object", "additionalProperties": {"type": "array", "minItems": 1}, "minProperties": 1},
    "list": {"type": "array", "items": {"type": "object"}, "minItems": 1},
}  # fmt: skip


PLACE: Plain = {"type": "string", "pattern": r"^[\w.]+:\w+$"}
OUTSIDE: tuple[Plain, ...] = (PLACE, {"type": "object", "properties": {"type": PLACE}, "required": ["type"]})
"""A policy from outside the tree."""


def schema() -> Plain:
    """A schema of draft 2020-12."""
    whole = _partial(Condition.model_json_schema())
    fields: Plain = whole["properties"]
    shared = {name: fields[name] for name in SHARED}
    names: Plain = {"type": "array", "items": {"type": "string"}, "minItems": 1}
    seeds: Plain = {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1}
    override = _by_name(BASELINE.pattern, _block(shared))
    own: Plain = {"about": {"type": "string"}, "baselines": names, "override": override, "seeds": seeds}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema", "title": "experiments.yaml",
        **_block({
            "defaults": _block(shared),
            "baselines": _by_name(BASELINE.pattern, _block({name: fields[name] for name in POLICIES})),
            "run_sets": _by_name(RUN_SET.pattern, _block(own | shared) | {"required": ["baselines", "seeds"]}),
            "sweeps": _by_name(RUN_SET.pattern, _block(SWEEP | {"only": names, "seeds": seeds}) | {"required": ["run_set"]}),
        }),
        "$defs": whole["$defs"],
    }  # fmt: skip


def _block(properties: Mapping[str, Any]) -> Plain:
    """An object of these keys and no others, which may be left blank."""
    return {"type": ["object", "null"], "properties": dict(properties), "additionalProperties": False}


def _by_name(pattern: str, block: Plain) -> Plain:
    return {"type": ["object", "null"], "patternProperties": {f"^{pattern}$": block}, "additionalProperties": False}


def _partial(node: Any) -> Any:
    """The same schema with nothing required, and policies that may be named only."""
    if isinstance(node, list):
        return [_partial(each) for each in node]
    if not isinstance(node, dict):
        return node
    rest = {key: _partial(value) for key, value in node.items() if key not in ("required", "discriminator", "oneOf")}
    if "discriminator" in node:
        names: Plain = {"type": "string", "enum": sorted(node["discriminator"]["mapping"])}
        rest["anyOf"] = [names, *_partial(node["oneOf"]), *OUTSIDE]
    return rest
