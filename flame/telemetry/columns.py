"""From the schema to columns: which polars columns the frame of a record kind has.

The dataclasses of `records` are the only source, so a field that is added there is a column here. Rules:

- `at` (a Progress) is flattened: its ordinals are the columns round, data_id, iteration,
  model_version, cycle of every frame. A field of the record itself that has such a name (the bin
  which an update echoes, say) is then called `own_<name>`.
- A dict stands as its JSON text, because its keys vary: `column.str.json_path_match("$.compute")`
  takes one of them. A tuple is a list.
- The envelope of a line stands in `_node`, `_incarnation`, `_seq`, `_clock`, `_t_ns`, `_stamp_ns`.
- Absent is null, never 0.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import polars as pl

from flame.core.progress import Progress
from flame.telemetry.records import RECORDS, Level

ENVELOPE: dict[str, pl.DataType] = {
    "node": pl.String(), "incarnation": pl.String(), "seq": pl.Int64(), "clock": pl.String(), "t_ns": pl.Int64(), "stamp_ns": pl.Int64(),
}  # fmt: skip
"""Keys of a line that become columns, with `_` before their names. `v` and `run` are the same on each."""

ORDINALS = tuple(field.name for field in fields(Progress))
_AT = pl.Struct({name: pl.Int64() for name in ORDINALS})
_SCALARS: dict[Any, pl.DataType] = {int: pl.Int64(), float: pl.Float64(), str: pl.String(), bool: pl.Boolean()}

KINDS: dict[str, type] = {record.__dataclass_fields__["kind"].default: record for record in RECORDS}  # type: ignore[attr-defined]
"""Kind of a record -> its dataclass."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its name, its type, and where a line has its value, such as `record`, `at`, `cycle`."""

    name: str
    dtype: pl.DataType
    path: tuple[str, ...]

    @property
    def of_line(self) -> pl.Expr:
        """The value, taken from the frame of nested lines."""
        expression = pl.col(self.path[0])
        for part in self.path[1:]:
            expression = expression.struct.field(part)
        return expression.alias(self.name)


def level(kind: str) -> Level:
    """The level of telemetry from which on `kind` is written."""
    return KINDS[kind].level  # type: ignore[attr-defined, no-any-return]


@cache
def columns(kind: str) -> tuple[Column, ...]:
    """The columns of `kind`: ordinals, own fields, envelope. Raises KeyError for an unknown kind."""
    return (*_own(KINDS[kind]), *(Column(f"_{name}", dtype, (name,)) for name, dtype in ENVELOPE.items()))


def schema(kind: str) -> dict[str, pl.DataType]:
    """Column names and types of the frame of `kind`."""
    return {column.name: column.dtype for column in columns(kind)}


@cache
def nested(kind: str) -> dict[str, pl.DataType]:
    """The type of a line of `kind` as it is written."""
    hints = get_type_hints(KINDS[kind])
    record = {field.name: _AT if field.name == "at" else _dtype(hints[field.name]) for field in fields(KINDS[kind])}
    return {"v": pl.Int64(), **ENVELOPE, "record": pl.Struct(record)}


def _own(record: type) -> Iterator[Column]:
    hints = get_type_hints(record)
    ordinals = ORDINALS if "at" in hints else ()
    for name in ordinals:
        yield Column(name, pl.Int64(), ("record", "at", name))
    for field in fields(record):
        if field.name not in ("at", "kind"):
            name = f"own_{field.name}" if field.name in ordinals else field.name
            yield Column(name, _dtype(hints[field.name]), ("record", field.name))


def _arms(annotation: Any) -> list[Any]:
    """The members of a union without None; the annotation itself where it is none."""
    if get_origin(annotation) in (Union, UnionType):
        return [arm for arm in get_args(annotation) if arm is not NoneType]
    return [annotation]


def _dtype(annotation: Any) -> pl.DataType:
    """The column type of an annotation. Raises TypeError for one that has none."""
    (kind,) = _arms(annotation)
    origin, arguments = get_origin(kind), get_args(kind)
    if kind in _SCALARS:
        return _SCALARS[kind]
    if origin in (Literal, dict):
        return pl.String()
    if origin in (list, tuple):
        return pl.List(_dtype(arguments[0]))
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        return pl.Struct({field.name: _dtype(hints[field.name]) for field in fields(kind)})
    raise TypeError(f"no column type for {annotation}")
