"""Columns follow the record dataclasses."""

import polars as pl
import pytest

from flame.telemetry.columns import KINDS, _dtype, columns, schema


@pytest.mark.parametrize("kind", KINDS)
def test_every_record_has_columns_of_distinct_names(kind: str) -> None:
    names = [column.name for column in columns(kind)]
    assert len(names) == len(set(names))
    assert {"_node", "_seq", "_t_ns", "_stamp_ns"} <= set(names)


def test_progress_is_flattened() -> None:
    assert list(schema("agg_round"))[:5] == ["round", "data_id", "iteration", "model_version", "cycle"]


def test_a_field_with_an_ordinals_name_is_the_records_own() -> None:
    names = schema("accepted")
    assert {"data_id", "own_data_id", "iteration", "own_iteration"} <= names.keys()
    assert "own_data_id" not in schema("trainer_round")


def test_nested_values_are_lists_and_structs_and_dicts_are_text() -> None:
    assert schema("trainer_round")["phases"] == pl.String()
    assert schema("accepted")["interval_ns"] == pl.List(pl.Int64())
    assert isinstance(schema("agg_round")["cohort"], pl.List)
    assert isinstance(schema("resource")["rss_bytes"], pl.Struct)


def test_an_annotation_without_a_column_type_is_an_error() -> None:
    with pytest.raises(TypeError, match="no column type"):
        _dtype(bytes)
