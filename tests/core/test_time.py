"""The two gates between seconds and nanoseconds, and the clock that people read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.time import clock_text, in_seconds, seconds


@pytest.mark.parametrize(
    ("value", "ns"),
    [
        (0, 0),
        (1, 1_000_000_000),
        (0.1, 100_000_000),
        (1e-9, 1),
        (0.6e-9, 1),
        (0.4e-9, 0),
        (2.675, 2_675_000_000),
        (8 / 3, 2_666_666_667),
        (-1.5, -1_500_000_000),
    ],
)
def test_seconds_are_rounded_to_the_nearest_nanosecond(value: float, ns: int) -> None:
    assert seconds(value) == ns
    assert isinstance(seconds(value), int)


@given(st.integers(-(10**9), 10**9))
def test_a_microsecond_survives_both_gates(micros: int) -> None:
    ns = micros * 1000
    assert seconds(in_seconds(ns)) == ns


def test_in_seconds_divides() -> None:
    assert in_seconds(1_500_000_000) == 1.5


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "00:00:00.000"),
        (999_999, "00:00:00.000"),
        (1_000_000, "00:00:00.001"),
        (192_400_000_000, "00:03:12.400"),
        (59_999_999_999, "00:00:59.999"),
        (3_600_000_000_000, "01:00:00.000"),
        (100 * 3_600_000_000_000 + 61_001_000_000, "100:01:01.001"),
        (-1_500_000_000, "-00:00:01.500"),
    ],
)
def test_clock_text(ns: int, text: str) -> None:
    assert clock_text(ns) == text
