"""Modelled legs: seconds and bytes over a rate, in whole nanoseconds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from flame.config.condition import Wan

SIZES = st.integers(0, 10**10)


def test_a_leg_is_latency_and_bytes_over_the_rate() -> None:
    """1.8 MB of an adapter at 20 Mbit/s down and 5 Mbit/s up: 0.72 s and 2.88 s, behind 50 ms."""
    wan = Wan(seconds=0.05, down_mbit=20, up_mbit=5)
    assert (wan.down(1_800_000), wan.up(1_800_000)) == (770_000_000, 2_930_000_000)
    assert wan.down(0) == wan.up(0) == 50_000_000


@given(SIZES)
def test_off_is_no_time_at_all(size: int) -> None:
    assert Wan().down(size) == Wan().up(size) == 0


@given(SIZES, SIZES, st.floats(1e-3, 1e5))
def test_more_bytes_never_take_less_time(one: int, other: int, rate: float) -> None:
    wan = Wan(seconds=0.001, down_mbit=rate)
    small, large = sorted((one, other))
    assert 1_000_000 <= wan.down(small) <= wan.down(large)
    assert wan.up(large) == 1_000_000, "no rate, no time"


@pytest.mark.parametrize("wrong", [{"seconds": -1}, {"down_mbit": 0}, {"up_mbit": -5}, {"mbit": 5}])
def test_numbers_that_mean_nothing_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValidationError):
        Wan.model_validate(wrong)
