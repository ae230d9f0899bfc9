"""Equality of two tables, told as `parity.measures.compare` tells that of two series, without a Python object per row.

    equal_rows("accepted updates", "id {id}", real, sim)

The place of a row is worded with the columns in braces, which are its key; the other columns are its value (several
of them: a mapping by name). Keys are unique; of rows with the same key the last one stands, as in a dictionary.
"""

from collections.abc import Sequence
from dataclasses import replace
from string import Formatter
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from parity.exhibits import Rows, Sequences
from parity.measures.compare import NOTHING, SHOWN, differing
from parity.rung import Finding, passed, skipped

SIM = ":sim"
"""Ends the names of the sim's columns."""
HERE = ":here"


def equal_rows(what: str, place: str, real: pl.DataFrame, sim: pl.DataFrame) -> Finding:
    """Whether both tables have the same places with the same values. what: the plural of a place, such as `cycles`."""
    keys = [name for _, name, _, _ in Formatter().parse(place) if name]
    values = [name for name in real.columns if name not in keys]
    both = _side_by_side(real, sim, keys)
    if not both.height:
        return skipped(f"no {what} to compare", n=0)
    parted = both.select(_apart(values))["apart"]
    exhibit = Sequences(what, Rows(both.select(keys), lambda row: place.format(**row)), *_sides(both, values), parted.to_list())
    wrong, n = int(parted.sum()), both.height
    if not wrong:
        return replace(passed(f"{n} {what} equal", effect=0.0, tol=0.0, n=n), exhibit=exhibit)
    apart = both.filter(parted)
    first = {place.format(**row): (_value(row, values, ""), _value(row, values, SIM)) for row in apart.head(SHOWN).rows(named=True)}
    return replace(differing(what, wrong, n, first, _numbers(apart, values)), exhibit=exhibit)


def in_order(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows with their `number`, from 0 on."""
    return frame.with_row_index("number").with_columns(pl.col("number").cast(pl.Int64))


def _side_by_side(real: pl.DataFrame, sim: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """A row for each place, real's first: its key, real's values, those of the sim, and who has it."""
    one, two = (_keyed(side, keys).with_columns(pl.lit(True).alias(HERE)) for side in (real, sim))
    two = two.rename({name: name + SIM for name in two.columns if name not in keys})
    if one.select(keys).equals(two.select(keys)):
        return one.hstack(two.drop(keys))
    return one.join(two, on=keys, how="full", coalesce=True, nulls_equal=True, maintain_order="left_right")


def _keyed(side: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """The rows, one a key: the last value of each, at the place of the first."""
    if side.select(keys).n_unique() == side.height:
        return side
    return side.group_by(keys, maintain_order=True).last().select(side.columns)


def _apart(values: Sequence[str]) -> pl.Expr:
    differ = [pl.col(name).ne_missing(pl.col(name + SIM)) for name in values]
    return pl.any_horizontal(pl.col(HERE).is_null(), pl.col(HERE + SIM).is_null(), *differ).alias("apart")


def _sides(both: pl.DataFrame, values: Sequence[str]) -> tuple[Rows[object], Rows[object]]:
    """The values of either side, None where it has none."""

    def side(end: str) -> Rows[object]:
        def tell(row: dict[str, Any]) -> object:
            return None if (value := _value(row, values, end)) is NOTHING else value

        return Rows(both.select(HERE + end, *(name + end for name in values)), tell)

    return side(""), side(SIM)


def _value(row: dict[str, Any], values: Sequence[str], end: str) -> object:
    """What one side has in a row: NOTHING, the value, or a mapping of several."""
    if row[HERE + end] is None:
        return NOTHING
    return row[values[0] + end] if len(values) == 1 else {name: row[name + end] for name in values}


def _numbers(apart: pl.DataFrame, values: Sequence[str]) -> NDArray[np.float64] | None:
    """Both values where both are numbers; None where none are."""
    if len(values) != 1 or not apart.schema[values[0]].is_numeric():
        return None
    pairs = apart.select(pl.col(values[0], values[0] + SIM).cast(pl.Float64)).drop_nulls()
    return pairs.to_numpy() if pairs.height else None
