"""Layers of plain values that make one condition: merged, patched, and remembered by who wrote what.

Mappings merge key by key, the upper layer wins, lists and values are replaced whole. A mapping whose
`type` differs from the one below replaces it: `{type: all}` over `{type: random, every: round}` is
`all`, without a stray `every`. A bare name is the same as `{type: name}`. Of the sources of
delays, which exclude each other, the upper layer's stands.

It is the same with what a value above switches off: under `task: toy` of a run-set nobody hears the `tokens` that
`defaults` has for all of them, and they go (`settled`). Beside its switch or above it, such a value is refused.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import ValidationError

from flame.config.delays import SOURCES
from flame.config.errors import ConfigError, Place, check_mapping, shown, unheard

T = TypeVar("T")

NOTHING: Mapping[str, Any] = {}
BY_NAME = ("select", "rate", "perturb", "estimator", "server_opt", "sizes")
"""Fields that may be written as a bare name."""

BOOL = "tag:yaml.org,2002:bool"


class Loader(yaml.SafeLoader):
    """YAML that reads `1e-3` as a number, `on`, `off`, `yes` and `no` as words, and refuses a key that is written twice."""

    yaml_implicit_resolvers = {
        letter: [(tag, form) for tag, form in forms if tag != BOOL] for letter, forms in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Raises ConfigError for a duplicate key, of which one would be dead."""
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, str) and key in seen:
                raise ConfigError(f"the key `{key}` is written a second time in line {key_node.start_mark.line + 1}", "keep one of the two")
            seen.add(key if isinstance(key, str) else None)
        return super().construct_mapping(node, deep)


Loader.add_implicit_resolver(BOOL, re.compile(r"(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF"))
Loader.add_implicit_resolver("tag:yaml.org,2002:float", re.compile(r"[-+]?(?:\d[\d_]*)(?:\.[\d_]*)?[eE][-+]?\d+$"), list("-+0123456789"))


def read_yaml(text: str, where: str) -> Any:
    """The plain value of a YAML text. Raises ConfigError, with the place of the fault."""
    try:
        value = yaml.load(text, Loader)
    except yaml.YAMLError as error:
        raise ConfigError(f"{where} can't be read: {' '.join(str(error).split())}", "correct the YAML there") from None
    _check_plain(value, where)
    return value


def read_file(path: Path) -> Any:
    """The plain value of a YAML file. Raises ConfigError where it isn't one."""
    try:
        return read_yaml(path.read_text(encoding="utf-8"), path.name)
    except UnicodeDecodeError as error:
        raise ConfigError(f"`{path.name}` can't be read: byte {error.start} is no UTF-8", "save it as YAML in UTF-8") from None
    except OSError as error:
        raise ConfigError(f"`{path.name}` can't be read: {error.strerror}", "see to it that it may be read") from None


@dataclass(frozen=True, slots=True)
class Patch:
    """One field set from the command line. value: the new one, or a function from the old one. flag: as it was typed, for messages."""

    path: Place
    value: Any
    flag: str

    def __post_init__(self) -> None:
        """A bare name of a policy is spelled out, so that whoever asks sees the `type` that it sets."""
        if len(self.path) == 1:
            object.__setattr__(self, "value", _spelled_out({self.path[0]: self.value})[self.path[0]])

    @classmethod
    def parse(cls, text: str) -> "Patch":
        """`a.b.c=value`, the value in YAML. Raises ConfigError when it isn't of that form."""
        key, sign, value = text.partition("=")
        path = tuple(key.strip().split("."))
        if not sign or not all(path):
            raise ConfigError(f"`--set {text}` is not of the form `a.b.c=value`", "write it like `--set stop.cycles=4`")
        return cls(path, read_yaml(value, f"the value in `--set {text}`"), f"--set {text}")


@dataclass(frozen=True, slots=True)
class Layer:
    """Plain values with the place that they were written in, such as `baselines.fwdllm`."""

    where: str
    values: Mapping[str, Any]


def stack(layers: Sequence[Layer], patches: Sequence[Patch] = (), unsaid: Mapping[str, Any] = NOTHING) -> dict[str, Any]:
    """The layers from the lowest to the highest, then the patches. Raises ConfigError for a patch that leads nowhere.

    unsaid: what a field is that no layer has. Its numbers may be patched, and a layer may name numbers alone.
    """
    merged: dict[str, Any] = {}
    for layer in layers:
        merged = merge(merged, _spelled_out(layer.values))
    merged = {key: merge(unsaid[key], value) if _numbers_alone(value, unsaid.get(key)) else value for key, value in merged.items()}
    for patch in patches:
        key, *inner = patch.path
        below = {key: unsaid[key]} if inner and merged.get(key) is None and key in unsaid else {}
        merged = _patched(merged | below, patch.path, patch)
    return merged


def _numbers_alone(value: Any, unsaid: Any) -> bool:
    """Whether a layer says numbers of a policy that nobody named."""
    return isinstance(value, Mapping) and "type" not in value and isinstance(unsaid, Mapping) and "type" in unsaid


def writer(place: Place, layers: Sequence[Layer], patches: Sequence[Patch] = ()) -> str:
    """Who wrote the value at `place`: ` in <layer>`, ` in <flag>`, or nothing."""
    for patch in reversed(patches):
        if place and all(_same_key(mine, yours) for mine, yours in zip(patch.path, place, strict=False)):
            return f" in `{patch.flag}`" if patch.flag.startswith("--set") else f" (from `{patch.flag}`)"
    for layer in reversed(layers):
        if place and _holds(_spelled_out(layer.values), place):
            return f" in {layer.where}"
    return ""


def height(place: Place, layers: Sequence[Layer], patches: Sequence[Patch] = ()) -> int:
    """The number of the highest layer that says what is at `place`; their count for a patch, -1 for none."""
    if any(_says(patch, place) for patch in patches):
        return len(layers)
    return max((number for number, layer in enumerate(layers) if _holds(_spelled_out(layer.values), place)), default=-1)


def settled(make: Callable[[Mapping[str, Any]], T], plain: Mapping[str, Any], layers: Sequence[Layer], patches: Sequence[Patch] = ()) -> T:
    """What `make` makes of plain values, but for those that an upper layer switched off, or that are the lowest's and nobody hears.

    Raises ValidationError, as `make` does.
    """
    while True:
        try:
            return make(plain)
        except ValidationError as error:
            found = unheard(error, plain)
            own, switch = (height(place, layers, patches) for place in found) if found else (-1, -1)
            if found is None or not 0 <= own < max(switch, 1):
                raise
            plain = without(plain, found[0])


def without(values: Mapping[str, Any], place: Place) -> dict[str, Any]:
    """`values` but for what is at `place`, a way through mappings and lists."""
    less: dict[str, Any] = _without(values, place)
    return less


def _without(value: Any, place: Place) -> Any:
    key, rest = place[0], place[1:]
    if not _holds(value, (key,)):
        return value
    if isinstance(value, list):
        inner = [_without(value[int(key)], rest)] if rest else []
        return [*value[: int(key)], *inner, *value[int(key) + 1 :]]
    return {name: _without(each, rest) if name == key else each for name, each in value.items() if rest or name != key}


def _says(patch: Patch, place: Place) -> bool:
    """Whether a patch says what is at `place`: the value there, one that it is in, or one in it."""
    alike = all(_same_key(mine, yours) for mine, yours in zip(patch.path, place, strict=False))
    return alike and (len(patch.path) >= len(place) or callable(patch.value) or _holds(patch.value, place[len(patch.path) :]))


def _same_key(patched: str, key: str) -> bool:
    """An entry of a list may be patched by its `type`, and is reported by its index."""
    return patched == key or (key.isdecimal() and not patched.isdecimal())


def merge(lower: Mapping[str, Any], upper: Mapping[str, Any]) -> dict[str, Any]:
    """`upper` over `lower`; neither is changed."""
    merged = {} if _of_another_type(lower, upper) else dict(lower)
    if any(upper.get(key) is not None for key in SOURCES):
        merged = {key: value for key, value in merged.items() if key not in SOURCES or key in upper}
    for key, value in upper.items():
        below = merged.get(key)
        merged[key] = merge(below, value) if isinstance(value, Mapping) and isinstance(below, Mapping) else value
    return merged


def _of_another_type(below: Mapping[str, Any], above: Mapping[str, Any]) -> bool:
    return "type" in above and above["type"] != below.get("type", above["type"])


def _spelled_out(values: Mapping[str, Any]) -> dict[str, Any]:
    """Bare names of policies as `{type: name}`."""
    return {key: {"type": value} if key in BY_NAME and isinstance(value, str) else value for key, value in values.items()}


def _patched(value: Any, path: Place, patch: Patch) -> Any:
    """A copy of `value` in which `path` holds the patch's value. A list is entered by index, or by the `type` of an entry."""
    if not path and callable(patch.value):
        return patch.value(value)
    if not path:
        return patch.value
    key, rest = path[0], path[1:]
    if isinstance(value, Mapping):
        return merge(value, {key: _patched(value.get(key), rest, patch)})
    if isinstance(value, list):
        at = _entry(value, key, patch)
        entry = {"type": value[at]} if isinstance(value[at], str) and rest else value[at]
        return [*value[:at], _patched(entry, rest, patch), *value[at + 1 :]]
    if value is None:
        return {key: _patched(None, rest, patch)}
    parent = ".".join(patch.path[: len(patch.path) - len(path)])
    raise ConfigError(f"`{patch.flag}`: `{parent}` is {shown(value)}, which has no `{key}`", f"set `{parent}` itself")


def _entry(entries: list[Any], key: str, patch: Patch) -> int:
    types = [entry.get("type", "?") if isinstance(entry, Mapping) else str(entry) for entry in entries]
    if key.isdecimal() and int(key) < len(entries):
        return int(key)
    if key in types:
        return types.index(key)
    place = ".".join(patch.path[: patch.path.index(key)])
    raise ConfigError(
        f"`{patch.flag}`: `{place}` has no entry `{key}`", f"it has {', '.join(f'{n} ({name})' for n, name in enumerate(types))}"
    )


def _holds(values: Any, place: Place) -> bool:
    for key in place:
        if isinstance(values, Mapping) and key in values:
            values = values[key]
        elif isinstance(values, list) and key.isdecimal() and int(key) < len(values):
            values = values[int(key)]
        else:
            return False
    return True


def _check_plain(value: Any, where: str) -> None:
    """Only what JSON has too, so that the stored condition is the one that was written."""
    if isinstance(value, Mapping):
        for key, inner in check_mapping(value, where).items():
            _check_plain(inner, f"{where}.{key}")
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            _check_plain(inner, f"{where}.{number}")
    elif isinstance(value, float) and not isfinite(value):
        raise ConfigError(f"{where} holds {value}", "give a finite number, or leave the key out")
    elif not isinstance(value, str | int | float | bool | None):
        raise ConfigError(f"{where} holds {value}, read as a {type(value).__name__}", "write it in quotes")
