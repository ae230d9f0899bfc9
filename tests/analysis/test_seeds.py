"""Seeds as mean and band, by hand and as a property."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.analysis.seeds import band


def curve(points: list[tuple[float, float | None]]) -> pl.DataFrame:
    return pl.DataFrame(points, schema={"x": pl.Float64, "y": pl.Float64}, orient="row")


def test_two_seeds_by_hand() -> None:
    table = band([curve([(0, 0.0), (2, 1.0), (4, 1.0)]), curve([(1, 0.5), (3, 0.5)])], "x", "y")
    assert table["x"].to_list() == [1, 2, 3]
    assert table["mean"].to_list() == [0.5, 0.75, 0.75]
    assert table["low"].to_list() == [0.5, 0.5, 0.5]
    assert table["high"].to_list() == [0.5, 1.0, 1.0]


def test_one_seed_is_itself_and_seeds_that_never_meet_are_nothing() -> None:
    alone = band([curve([(0, 0.25), (1, None), (2, 0.5)])], "x", "y")
    assert alone.rows() == [(0, 0.25, 0.25, 0.25), (2, 0.5, 0.5, 0.5)]
    assert band([curve([(0, 1.0), (1, 1.0)]), curve([(2, 1.0), (3, 1.0)])], "x", "y").height == 0
    assert band([curve([(0, 1.0)]), curve([])], "x", "y").height == 0
    assert band([], "x", "y").height == 0


POINTS = st.lists(st.tuples(st.integers(0, 20), st.floats(-5, 5)), min_size=1, max_size=12, unique_by=lambda point: point[0])


@given(st.lists(POINTS, min_size=1, max_size=4))
def test_the_mean_lies_in_the_band_and_the_band_in_what_was_seen(seeds: list[list[tuple[float, float]]]) -> None:
    table = band([curve(sorted(points)) for points in seeds], "x", "y")
    seen = [value for points in seeds for _, value in points]
    for x, mean, low, high in table.iter_rows():
        assert low - 1e-9 <= mean <= high + 1e-9
        assert min(seen) - 1e-9 <= low <= high <= max(seen) + 1e-9
        assert all(min(points)[0] <= x <= max(points)[0] for points in seeds)


def test_equal_seeds_have_no_band() -> None:
    one = curve([(0, 0.1), (1, 0.7), (2, 0.4)])
    table = band([one, one, one], "x", "y")
    assert table["low"].to_list() == table["high"].to_list() == pytest.approx([0.1, 0.7, 0.4])
