"""Parameter arithmetic against an independent reading of the formulas (algorithms.md, sections 3, 4, 11)."""

from fractions import Fraction
from math import fsum

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flame.core.rng import derive
from flame.learn.params import Layout, array, finite, half_variance, norm, tensor, total, vector, weighted_mean
from flame.policies.perturb.noise import direction

FLOATS = st.floats(-1e3, 1e3, width=32)


def uploads_of(rows: list[list[float]], dtype: str = "float32"):
    return [tensor(np.array(row, dtype)) for row in rows]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.lists(FLOATS, min_size=3, max_size=3), st.floats(0, 1)), min_size=1, max_size=7))
def test_weighted_mean_is_the_sum_over_n_uploads_not_over_the_rates(rows):
    uploads, rates = uploads_of([row for row, _ in rows], "float64"), [rate for _, rate in rows]
    exact = [sum(Fraction(rate) * Fraction(row[i]) for row, rate in rows) / len(rows) for i in range(3)]
    assert weighted_mean(uploads, rates) == pytest.approx([float(value) for value in exact], rel=1e-12, abs=1e-9)


def test_weighted_mean_adds_in_the_order_given_and_rounds_once():
    uploads = uploads_of([[1e8, 1.0], [1.0, 1e-8], [-1e8, -1.0]])
    got = weighted_mean(uploads, [1.0, 1.0, 1.0])
    assert got.dtype == np.float32
    assert got.tolist() == [np.float32(1 / 3), np.float32((1.0 + float(np.float32(1e-8)) - 1.0) / 3)]


def test_weighted_mean_of_nothing_is_an_error():
    with pytest.raises(ValueError, match="no uploads"):
        weighted_mean([], [])


def test_total_is_unweighted():
    assert total(uploads_of([[1, 2], [3, 4]])) == tensor(np.array([4, 6], np.float32))
    assert total([]) is None


@settings(max_examples=50, deadline=None)
@given(st.lists(st.lists(FLOATS, min_size=4, max_size=4), min_size=2, max_size=9))
def test_half_variance_is_the_formula(rows):
    half = len(rows) // 2
    means = [[fsum(row[i] for row in part) / len(part) for i in range(4)] for part in (rows[:half], rows[half:])]
    expected = fsum((a - b) ** 2 for a, b in zip(*means, strict=True)) / (2 * 4)
    assert half_variance(uploads_of(rows)) == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_half_variance_needs_two_uploads():
    assert half_variance([]) is None
    assert half_variance(uploads_of([[1, 2]])) is None


def test_half_variance_ignores_the_order_inside_a_half_and_sees_an_exchange_across():
    rows = np.random.default_rng(3).normal(size=(7, 5))
    inside, across = [2, 0, 1, 6, 4, 3, 5], [3, 1, 2, 0, 4, 5, 6]
    plain, within, over = (half_variance([tensor(rows[i]) for i in order]) for order in (range(7), inside, across))
    assert within == pytest.approx(plain, rel=1e-12)
    assert abs(over - plain) > 1e-3 * plain


@pytest.mark.parametrize("n", [2, 5, 10])
def test_half_variance_of_single_probes_has_the_expected_mean(n):
    size, trials = 12, 3000
    g = np.arange(1.0, size + 1)
    values = []
    for trial in range(trials):
        probes = [direction(derive(n, "ev", trial), i, size, "gaussian") for i in range(n)]
        values.append(half_variance([tensor((v @ g) * v) for v in probes]))
    expected = 0.5 * (1 / (n // 2) + 1 / (n - n // 2)) * (g @ g) * (1 + 1 / size)
    assert np.mean(values) == pytest.approx(expected, rel=0.06)


def test_views_are_read_only_and_share_the_bytes():
    held = tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
    assert array(held).shape == (2, 3)
    with pytest.raises(ValueError, match="read-only"):
        vector(held)[0] = 1


def test_a_layout_places_its_tensors_one_after_the_other():
    layout = Layout(("w", "b"), ((2, 3), (2,)))
    assert layout.size == 8
    assert list(layout.slices()) == [("w", slice(0, 6), (2, 3)), ("b", slice(6, 8), (2,))]


def test_norm_and_finite():
    assert norm(np.array([3.0, 4.0], np.float32)) == 5.0
    assert finite(np.ones(3))
    assert not finite(np.array([1.0, np.nan]))
    assert not finite(np.array([np.inf]))
