"""From the schema to columns: which polars columns the frame of a record kind has.

The dataclasses of `records` are the only source, so a field that is added there is a column here. Rules:

- `at` (a Progress) is flattened: its ordinals are the columns round, data_id, iteration,
  model_version, cycle of every frame. A field of the record itself that has such a name (the bin
  which an update echoes, say) is then called `own_<name>`.
- A dict is a list of (key, value) structs, because its keys vary; a tuple is a list.
- The envelope of a line stands in `_node`, `_incarnation`, `_seq`, `_clock`, `_t_ns`, `_stamp_ns`.
- Absent is null, never 0.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import polars as pl

from flame.core.progress import Progress
from flame.telemetry.records import RECORDS, Level

ENVELOPE = ("node", "incarnation", "seq", "clock", "t_ns", "stamp_ns")
"""Keys of a line that become columns, with `_` before their names. `v` and `run` are the same on each."""

_ENVELOPE_TYPES = (pl.String(), pl.String(), pl.Int64(), pl.String(), pl.Int64(), pl.Int64())
_SCALARS: dict[Any, pl.DataType] = {int: pl.Int64(), float: pl.Float64(), str: pl.String(), bool: pl.Boolean()}

Plain = dict[str, Any]
"""A decoded line, or a decoded record."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its name and type, and how its value is taken from a decoded line."""

    name: str
    dtype: pl.DataType
    take: Callable[[Plain], Any]


KINDS: dict[str, type] = {record.__dataclass_fields__["kind"].default: record for record in RECORDS}  # type: ignore[attr-defined]
"""Kind of a record -> its dataclass."""


def level(kind: str) -> Level:
    """The level of telemetry from which on `kind` is written."""
    return KINDS[kind].level  # type: ignore[attr-defined, no-any-return]


@cache
def columns(kind: str) -> tuple[Column, ...]:
    """The columns of `kind`: ordinals, own fields, envelope. Raises KeyError for an unknown kind."""
    return (*_own(KINDS[kind]), *_envelope())


def schema(kind: str) -> dict[str, pl.DataType]:
    """Column names and types of the frame of `kind`."""
    return {column.name: column.dtype for column in columns(kind)}


def _own(record: type) -> Iterator[Column]:
    hints = get_type_hints(record)
    ordinals = [field.name for field in fields(Progress)] if "at" in hints else []
    for name in ordinals:
        yield Column(name, pl.Int64(), _ordinal(name))
    for field in fields(record):
        if field.name not in ("at", "kind"):
            name = f"own_{field.name}" if field.name in ordinals else field.name
            yield Column(name, _dtype(hints[field.name]), _value(field.name, _is_mapping(hints[field.name])))


def _envelope() -> Iterator[Column]:
    for name, dtype in zip(ENVELOPE, _ENVELOPE_TYPES, strict=True):
        yield Column(f"_{name}", dtype, _line_value(name))


def _ordinal(name: str) -> Callable[[Plain], Any]:
    return lambda line: (line["record"].get("at") or {}).get(name)


def _value(name: str, mapping: bool) -> Callable[[Plain], Any]:
    if mapping:
        return lambda line: _pairs(line["record"].get(name))
    return lambda line: line["record"].get(name)


def _line_value(name: str) -> Callable[[Plain], Any]:
    return lambda line: line.get(name)


def _pairs(mapping: Plain | None) -> list[Plain] | None:
    return None if mapping is None else [{"key": key, "value": value} for key, value in mapping.items()]


def _arms(annotation: Any) -> list[Any]:
    """The members of a union without None; the annotation itself where it is none."""
    if get_origin(annotation) in (Union, UnionType):
        return [arm for arm in get_args(annotation) if arm is not NoneType]
    return [annotation]


def _is_mapping(annotation: Any) -> bool:
    return get_origin(_arms(annotation)[0]) is dict


def _dtype(annotation: Any) -> pl.DataType:
    """The column type of an annotation. Raises TypeError for one that has none."""
    (kind,) = _arms(annotation)
    origin, arguments = get_origin(kind), get_args(kind)
    if kind in _SCALARS:
        return _SCALARS[kind]
    if origin is Literal:
        return pl.String()
    if origin is dict:
        return pl.List(pl.Struct({"key": pl.String(), "value": _dtype(arguments[1])}))
    if origin in (list, tuple):
        return pl.List(_dtype(arguments[0]))
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        return pl.Struct({field.name: _dtype(hints[field.name]) for field in fields(kind)})
    raise TypeError(f"no column type for {annotation}")
