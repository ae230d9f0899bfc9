"""The slope of a log ratio: found where it is, not where there is none, and never from a few places."""

import numpy as np
import pytest

from parity.measures.drift import PER, drift, log_ratio, slope
from parity.measures.statistics import outcome


def _series(n: int, seed: int, growth: float = 0.0) -> np.ndarray:
    """Positive, noisy, growing by `growth` per place in the logarithm."""
    noise = np.random.Generator(np.random.Philox(key=seed)).normal(0, 0.05, n)
    return np.asarray(np.exp(noise + growth * np.arange(n)))


def test_a_slope_is_told_per_hundred_places() -> None:
    assert slope(0.002 * np.arange(50)) == pytest.approx(0.002 * PER)
    assert slope(np.ones(1)) == 0.0
    assert log_ratio([2.0], [1.0])[0] == pytest.approx(np.log(2))


def test_a_growing_ratio_is_a_drift_and_a_constant_one_is_not() -> None:
    growing = drift(_series(200, 1, 0.002), _series(200, 2), 0.05)
    assert growing.effect == pytest.approx(0.2, rel=0.1)
    assert outcome(growing, growing.p <= 0.001) is False
    offset = drift(3 * _series(200, 1), _series(200, 2), 0.05)
    assert outcome(offset, offset.p <= 0.001) is True


def test_equal_courses_pass_from_a_dozen_places_on_and_fewer_say_how_many_they_need() -> None:
    assert outcome(drift(np.full(12, 2.0), np.full(12, 2.0), 0.05), False) is True
    few = drift(_series(6, 1), _series(6, 2), 0.05)
    assert outcome(few, False) is None
    assert few.needs >= 10


def test_equal_laws_are_seldom_rejected() -> None:
    chances = [drift(_series(40, 2 * seed), _series(40, 2 * seed + 1), 0.05).p for seed in range(40)]
    assert sum(p <= 0.05 for p in chances) <= 6


def test_nothing_has_no_slope() -> None:
    with pytest.raises(ValueError, match="undefined"):
        drift([], [], 0.05)
