"""What is read off a learning curve, by hand; and that it has one home."""

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.analysis import curve

ROOT = Path(__file__).parents[2]


def of(accuracies: list[float | None], losses: list[float | None] | None = None, every: int = 1) -> pl.DataFrame:
    """A curve with an evaluation each `every` commits, and each second."""
    count = len(accuracies)
    data = {
        "version": [every * (n + 1) for n in range(count)], "stamp_ns": [10**9 * (n + 1) for n in range(count)],
        "accuracy": accuracies, "loss": losses or accuracies,
    }  # fmt: skip
    return pl.DataFrame(data, schema={"version": pl.Int64, "stamp_ns": pl.Int64, "accuracy": pl.Float64, "loss": pl.Float64})


@pytest.mark.parametrize(
    ("commits", "every", "window", "first"),
    [(1, 1, 1, 1), (2, 1, 1, 2), (9, 1, 3, 7), (299, 1, 99, 201), (300, 1, 100, 201), (600, 1, 100, 501), (600, 20, 100, 520)],
)
def test_accuracy_is_sustained_over_a_hundred_commits_or_a_third(commits: int, every: int, window: int, first: int) -> None:
    versions = range(every, commits + 1, every)
    table = of([float(version) for version in versions], every=every)
    late = [version for version in versions if version >= first]
    assert curve.window(table) == window
    assert curve.sustained(table) == pytest.approx(sum(late) / len(late))


def test_a_collapse_has_a_peak_and_nothing_sustained() -> None:
    fallen = of([0.2, 0.8, 0.84, 0.25, 0.25, 0.25])
    assert (curve.peak(fallen), curve.sustained(fallen), curve.last(fallen)) == (0.84, 0.25, 0.25)


def test_what_is_not_finite_makes_nothing_sustained_and_no_drop() -> None:
    assert curve.sustained(of([0.5, 0.5, None])) is None
    assert curve.sustained(of([None, 0.5, 0.5])) == 0.5
    assert curve.loss_drop(of([0.5] * 4, [1.0, 2.0, None, 1.0]), 2) is None
    assert curve.loss_drop(of([0.5] * 4, [1.0, 2.0, None, 0.25]), 1) == 0.75


def test_a_curve_without_evaluations_has_nothing() -> None:
    empty = of([])
    assert (curve.window(empty), curve.peak(empty), curve.last(empty), curve.sustained(empty), curve.loss_drop(empty)) == (0, *[None] * 4)
    assert curve.reached(empty, 0.0) is None


def test_an_accuracy_is_reached_at_the_first_evaluation_at_or_over_it() -> None:
    table = of([0.1, 0.5, 0.4, 0.6])
    assert [curve.reached(table, target) for target in (0.5, 0.55, 0.61)] == [2 * 10**9, 4 * 10**9, None]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=60))
def test_sustained_lies_between_the_lowest_and_the_peak(accuracies: list[float]) -> None:
    table = of(list(accuracies))
    lasting, peak = curve.sustained(table), curve.peak(table)
    assert lasting is not None
    assert peak == max(accuracies)
    assert min(accuracies) - 1e-12 <= lasting <= max(accuracies) + 1e-12


def test_the_window_has_one_home() -> None:
    sources = [path for folder in ("flame", "bench", "expt_scripts", "parity") for path in (ROOT / folder).rglob("*.py")]
    assert [path.name for path in sources if "SUSTAINED =" in path.read_text()] == ["curve.py"]
