"""Configuration errors in plain words: the field, the value, and what to type instead.

pydantic finds the faults; here the first one is put into words. Its location holds tags and names of
validators beside the keys that a person wrote (`commit.0.cap.max`), so it is walked along the data
and the models, and what is no key is left out.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from pydantic import BaseModel, ValidationError

from flame.policies import heard

Place = tuple[str, ...]
"""Keys from the root to a value; an entry of a list counts as its index."""

POLICIES = ("loop", "select", "staleness", "rate", "commit", "payload", "perturb", "estimator", "server_opt", "awareness", "sizes")
"""The fields of a condition that a baseline consists of."""


WANTED = {"int": "a whole number", "float": "a number", "bool": "true or false"}
"""By the first word of a kind of fault."""


class ConfigError(Exception):
    """A configuration that can't be run. str() is the whole message, the remedy last."""

    def __init__(self, what: str, hint: str) -> None:
        super().__init__(f"config error: {what}\nhint: {hint}")
        self.what, self.hint = what, hint

    def __reduce__(self) -> tuple[type["ConfigError"], tuple[str, str]]:
        return ConfigError, (self.what, self.hint)


def unknown(kind: str, name: str, known: Sequence[str], where: str) -> ConfigError:
    """An error for a `name` that isn't among `known`, with the nearest one. where: such as ` in baselines`."""
    plural = f"{kind[:-1]}ies" if kind.endswith("y") and kind[-2] not in "aeiou" else f"{kind}s"
    listed = f"Known {plural}: {', '.join(sorted(known))}" if known else f"there are no {plural}"
    return ConfigError(f"unknown {kind} `{name}`{where}", nearest(name.rpartition(".")[2], known) + listed)


def nearest(name: str, known: Sequence[str]) -> str:
    """`did you mean ...? ` with the name that is nearest to `name`, or nothing."""
    small = {each.lower(): each for each in known}
    near = get_close_matches(name.lower(), list(small), n=1, cutoff=0.5)
    return f"did you mean `{small[near[0]]}`? " if near else ""


def check_mapping(value: Any, where: str) -> Mapping[str, Any]:
    """`value` if it is a mapping with names for keys, else a ConfigError that names the place."""
    if not isinstance(value, Mapping):
        raise ConfigError(f"`{where}` is {shown(value)}", "write it as `key: value` lines")
    for odd in (key for key in value if not isinstance(key, str)):
        written = shown(odd).strip('`"')
        raise ConfigError(f"`{where}` has the key {shown(odd)}, which is no name", f'write it in quotes if it is meant: "{written}"')
    return value


def shown(value: Any) -> str:
    """A value as a person would write it, cut short."""
    text = json.dumps(value, default=str, ensure_ascii=False)
    return f"`{text if len(text) <= 60 else text[:57] + '...'}`"


def explain(error: ValidationError, model: type[BaseModel], data: Any, where: Callable[[Place], str] = lambda place: "") -> ConfigError:
    """The first fault that pydantic found in `data`, for a person. where: who wrote the value at a place."""
    faults, fault = error.errors(), _first(error)
    place = _place(fault["loc"], data)
    key, context = ".".join(place), fault.get("ctx", {})
    match fault["type"]:
        case "extra_forbidden":
            return unknown("key", key, _siblings(model, fault["loc"]), where(place))
        case "value_error":
            what, _, hint = str(fault["msg"]).removeprefix("Value error, ").partition("; ")
            return ConfigError(f"{f'`{key}`: ' if key else ''}{what}{where(place)}", hint or "correct the value")
        case heard.KIND:
            place = _place((*fault["loc"], context["key"]), data)
            return ConfigError(f"`{'.'.join(place)}` {context['what']}{where(place)}", context["hint"])
        case "union_tag_invalid":
            known = [tag.strip(" '") for tag in str(context["expected_tags"]).split(",")]
            return unknown(_kind(place[0]), str(context["tag"]), known, where(place))
        case "missing" if isinstance(fault["loc"][-1], int):
            lacking = sum(other["type"] == "missing" and other["loc"][:-1] == fault["loc"][:-1] for other in faults)
            return ConfigError(f"`{'.'.join(place[:-1])}` is {shown(fault['input'])}{where(place)}", f"list {lacking} more")
        case "missing":
            return _missing(fault, faults, data, where)
        case "union_tag_not_found":
            return ConfigError(f"`{key}.type` is missing{where(place)}", "add `type: ...`")
    if fault["type"] == "literal_error" and fault["loc"][-1] == "type" and len(fault["loc"]) > 1:
        return unknown(_kind(place[0]), str(fault["input"]), _choices(context), where(place))
    same = [other for other in faults if _place(other["loc"], data) == place]
    return ConfigError(f"`{key}` is {shown(fault['input'])}{where(place)}", ", or ".join(_remedy(other, place) for other in same))


def _missing(fault: Any, faults: Sequence[Any], data: Any, where: Callable[[Place], str]) -> ConfigError:
    """A key that a mapping lacks, by whoever chose the `type` that wants it: with another type, numbers of the one below go."""
    *outer, key = place = _place(fault["loc"], data)
    there, inside = data, ".".join(outer)
    for name in outer:
        there = there[int(name)] if isinstance(there, list) else there[name]
    named = {"type": there} if isinstance(there, str) else there if outer else {}
    said = where((*outer, "type") if named is there and "type" in named else tuple(outer) or place)
    told = f"`{'.'.join(place)}` is missing{said}"
    if named.keys() != {"type"}:
        return ConfigError(told, f"add `{key}: ...`")
    lacking = [other["loc"][-1] for other in faults if other["type"] == "missing" and other["loc"][:-1] == fault["loc"][:-1]]
    whole = "{" + ", ".join([f"type: {named['type']}", *(f"{name}: ..." for name in lacking)]) + "}"
    beside = f", or give `--set {inside}.{key}=...` behind it" if "`--" in said else ""
    in_whole = beside and not any(name.isdecimal() for name in outer)
    return ConfigError(told, (f"give `--set '{inside}={whole}'`" if in_whole else f"write `{whole}`") + beside)


def unheard(error: ValidationError, data: Any) -> tuple[Place, Place] | None:
    """Where the value stands that nobody hears, and where what it hangs on; None where the first fault is another."""
    fault = _first(error)
    if fault["type"] != heard.KIND:
        return None
    place = _place((*fault["loc"], fault["ctx"]["key"]), data)
    return place, (*place[:-1], *fault["ctx"]["by"].split("."))


def _first(error: ValidationError) -> Any:
    """The fault that is told: an unknown key before all others."""
    faults = error.errors()
    return next((fault for fault in faults if fault["type"] == "extra_forbidden"), faults[0])


def _remedy(fault: Any, place: Place) -> str:
    """What to type instead."""
    value, context = fault["input"], fault.get("ctx", {})
    kind = fault["type"].partition("_")[0]
    match fault["type"]:
        case "literal_error":
            choices = _choices(context)
            return f"{nearest(str(value), choices) if len(choices) > 1 else ''}give {_one_of(choices)}"
        case _ if kind in WANTED:
            return f"give {WANTED[kind]}" + (f", without quotes: `{place[-1]}: {value}`" if _reads_as(kind, value) else "")
        case "finite_number":
            return "give a finite number, or leave the key out"
        case "string_type" | "string_unicode":
            return f'give a name; in quotes if it looks like a number: `{place[-1]}: "{value}"`'
        case "greater_than" | "greater_than_equal" | "less_than" | "less_than_equal":
            words = {"gt": "over", "ge": "of at least", "lt": "under", "le": "of at most"}
            return " and ".join(f"give a number {words[name]} {bound:g}" for name, bound in context.items() if name in words)
        case "too_short" | "too_long" | "string_too_short" | "string_too_long":
            words = {"min_length": "at least", "max_length": "at most"}
            bound = " and ".join(f"{words[name]} {length}" for name, length in context.items() if name in words)
            return f"give {bound} {'letters' if kind == 'string' else 'entries'}"
        case "string_pattern_mismatch":
            return f"write it in the form `{context['pattern']}`"
        case "none_required":
            return "or leave it out"
        case "tuple_type" | "list_type":
            return f"write it as a list: `{place[-1]}: [...]`"
        case "model_type" | "model_attributes_type" | "dict_type":
            return f"write it as `{place[-1]}: {{key: value}}`"
    return "give a value of another kind"


def _kind(field: str) -> str:
    return f"{field} {'policy' if field in POLICIES else 'type'}"


def _reads_as(kind: str, value: Any) -> bool:
    if not isinstance(value, str):
        return False
    try:
        return bool({"int": int, "float": float}[kind](value) is not None)
    except (KeyError, ValueError):
        return value.lower() in ("true", "false") if kind == "bool" else False


def _choices(context: Mapping[str, Any]) -> list[str]:
    return [part for part in str(context["expected"]).split("'") if part.strip() not in ("", ",", "or")]


def _one_of(choices: Sequence[str]) -> str:
    ticked = [f"`{choice}`" for choice in choices]
    return ticked[0] if len(ticked) == 1 else f"{', '.join(ticked[:-1])} or {ticked[-1]}"


def _place(loc: Sequence[int | str], data: Any) -> Place:
    """The keys of a fault's location, without tags of unions and names of validators."""
    keys: list[str] = []
    for number, part in enumerate(loc):
        last = number == len(loc) - 1
        if isinstance(data, str) and data == part and not last:  # the tag of a bare name, and a key that it lacks
            data = {"type": data}
        if isinstance(data, list) and isinstance(part, int):
            data = data[part] if part < len(data) else None
        elif isinstance(data, Mapping) and (part in data or last):
            data = data.get(part)
        else:
            continue
        keys.append(str(part))
    return tuple(keys)


def _siblings(model: type[BaseModel], loc: Sequence[int | str]) -> list[str]:
    """The keys that would have been known where an unknown one stands."""
    return sorted({key for inner in _walk(model, loc[:-1]) for key in inner.model_fields})


def _walk(model: type[BaseModel], loc: Sequence[int | str]) -> list[type[BaseModel]]:
    """The models that may stand at a location; the one whose tag is in it, where there is a tag."""
    here = [model]
    for part in loc:
        if isinstance(part, int):
            continue
        deeper = [kind for inner in here if part in inner.model_fields for kind in _models(inner.model_fields[part].annotation)]
        here = deeper or [inner for inner in here if part in _tags(inner)] or here
    return here


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in getattr(annotation, "__args__", ()):
        yield from _models(part)


def _tags(model: type[BaseModel]) -> Sequence[str]:
    field = model.model_fields.get("type")
    return getattr(field.annotation, "__args__", ()) if field else ()
