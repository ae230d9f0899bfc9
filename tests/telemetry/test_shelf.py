"""What is packed comes out as it was put, by rows and by columns."""

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flame.telemetry import shelf
from flame.telemetry.columns import KINDS, schema
from flame.telemetry.reader import Telemetry
from flame.telemetry.shelf import Shelf
from tests.parity.fixtures import condition, write_run

SCHEMA = {"id": pl.Int64(), "name": pl.String(), "parts": pl.List(pl.Struct({"rate": pl.Float64()}))}
rows = st.lists(
    st.fixed_dictionaries(
        {
            "id": st.none() | st.integers(-(1 << 62), 1 << 62),
            "name": st.none() | st.text(max_size=3),
            "parts": st.none() | st.lists(st.fixed_dictionaries({"rate": st.none() | st.floats(allow_nan=False)}), max_size=2),
        }
    ),
    max_size=5,
)


@settings(max_examples=50, deadline=None)
@given(st.lists(rows, max_size=5), st.sampled_from([1, 60, 1 << 20]), st.lists(st.sampled_from(sorted(SCHEMA)), unique=True))
def test_rows_come_out_in_order(puts: list[list[dict[str, object]]], piece: int, names: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shelf, "PIECE_BYTES", piece)
        kept = Shelf(SCHEMA)
        for put in puts:
            kept.put(pl.DataFrame(put, schema=SCHEMA))
    expected = [{name: row[name] for name in names or SCHEMA} for put in puts for row in put]
    assert kept.take(*names).to_dicts() == expected
    assert dict(kept.take(*names).schema) == {name: SCHEMA[name] for name in names or SCHEMA}


def test_an_unknown_column_is_an_error() -> None:
    with pytest.raises(pl.exceptions.ColumnNotFoundError):
        Shelf(SCHEMA).take("nothing")


def test_a_packed_run_is_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_run(tmp_path, condition(), "real").path / "telemetry"
    plain = {kind: Telemetry(path).frame(kind) for kind in KINDS}
    monkeypatch.setattr(shelf, "PIECE_BYTES", 1)
    packed = Telemetry(path)
    for kind, frame in plain.items():
        assert packed.frame(kind).equals(frame)
        some = [*schema(kind)][::2]
        assert packed.frame(kind, *some).equals(frame.select(some))
