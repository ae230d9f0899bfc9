"""Configuration errors in plain words: the field, the value, and what to type instead."""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from pydantic import BaseModel, ValidationError


class ConfigError(Exception):
    """A configuration that can't be run. str() is the whole message, the remedy last."""

    def __init__(self, what: str, hint: str) -> None:
        super().__init__(f"config error: {what}\nhint: {hint}")
        self.what, self.hint = what, hint


def unknown(kind: str, name: str, known: Sequence[str], where: str) -> ConfigError:
    """An error for a `name` that isn't among `known`, with the nearest one."""
    near = get_close_matches(name.rpartition(".")[2], known, n=1, cutoff=0.5)
    guess = f"did you mean `{near[0]}`? " if near else ""
    return ConfigError(f"unknown {kind} `{name}`{where}", f"{guess}Known: {', '.join(sorted(known))}")


def explain(error: ValidationError, model: type[BaseModel], where: str) -> ConfigError:
    """The first fault of a pydantic error, for a person. where: such as ` in baselines.fwdllm`."""
    fault = error.errors()[0]
    place = [str(part) for part in fault["loc"]]
    if fault["type"] == "extra_forbidden":
        return unknown("key", ".".join(place), _siblings(model, place), where)
    if fault["type"] in ("union_tag_invalid", "union_tag_not_found"):
        tags = [tag.strip(" '") for tag in str(fault.get("ctx", {}).get("expected_tags", "")).split(",") if tag.strip()]
        return unknown(f"policy in `{'.'.join(place)}`:", str(fault.get("ctx", {}).get("tag", fault["input"])), tags, where)
    if fault["type"] == "value_error":
        what, _, hint = str(fault["msg"]).removeprefix("Value error, ").partition("; ")
        return ConfigError(f"{_at(place)}{what}{where}", hint or "correct the value")
    if fault["type"] == "missing":
        return ConfigError(f"`{'.'.join(place)}` is missing{where}", f"add `{place[-1]}`")
    return ConfigError(f"`{'.'.join(place)}` is {fault['input']!r}{where}", str(fault["msg"]).removeprefix("Input "))


def _at(place: Sequence[str]) -> str:
    return f"`{'.'.join(place)}`: " if place else ""


def _siblings(model: type[BaseModel], place: Sequence[str]) -> list[str]:
    """The keys that would have been known where an unknown one stands; the nearest model is walked down to."""
    for part in place[:-1]:
        field = model.model_fields.get(part)
        if field is None:
            break
        inner = [kind for kind in _models(field.annotation)]
        if len(inner) != 1:
            return sorted({key for kind in inner for key in kind.model_fields} or model.model_fields)
        model = inner[0]
    return sorted(model.model_fields)


def _models(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [kind for part in getattr(annotation, "__args__", ()) for kind in _models(part)]


def check_mapping(value: Any, where: str) -> Mapping[str, Any]:
    """`value` if it is a mapping, else a ConfigError that names the place."""
    if not isinstance(value, Mapping):
        raise ConfigError(f"`{where}` is {value!r}", "write it as `key: value` lines")
    return value
