"""Rates: by hand, against plain loops, and the align gate along a circle."""

from math import cos, pi, sin, sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from flame.policies.rate import Constant, FedBuff, Felix, GradAware, Rate, RateView, Weight

U = np.array([3.0, -4.0])
EAST = np.array([2.0, 0.0])


def view(staleness: float = 0, utility: float = 0.0, delta: Any = U, running: Any = None) -> RateView:
    return RateView(staleness, utility, np.asarray(delta), running)


def at(angle: float, length: float = 5.0) -> Any:
    return length * np.array([cos(angle), sin(angle)])


@pytest.mark.parametrize(("staleness", "utility"), [(0, 0.0), (3, 5.0), (100, -1.0)])
def test_a_constant_rate_is_1(staleness: int, utility: float) -> None:
    assert Constant().weigh(view(staleness, utility)) == Weight(1.0, {}, gated=False)


@pytest.mark.parametrize(("staleness", "rate"), [(0, 1.0), (3, 0.5), (8, 1 / 3), (1, 1 / sqrt(2)), (0.25, 1 / sqrt(1.25))])
def test_fedbuff_is_one_over_the_root_of_1_plus_s(staleness: float, rate: float) -> None:
    got = FedBuff().weigh(view(staleness, 7.0))
    assert got.value == pytest.approx(rate, rel=1e-15)
    assert (got.parts, got.gated) == ({"staleness": got.value}, False)


def test_felix_by_hand() -> None:
    """s = 0, U = 10.8: 0.4 + 0.6 (1.5 - 11.8^-0.1) = 0.831 (algorithms.md, section 11)."""
    got = Felix().weigh(view(0, 10.8))
    assert got.value == pytest.approx(0.831, abs=5e-4)
    assert got.parts["staleness"] == 1.0
    assert got.parts["utility"] == pytest.approx(0.7187, abs=1e-4)
    # s = 15: 16^-0.25 = 1/2; U = 1023: 1024^-0.1 = 1/2, so beta = 1
    assert Felix().weigh(view(15, 1023.0)).value == pytest.approx(0.4 * 0.5 + 0.6 * 1.0)


@given(st.integers(0, 1000), st.floats(0, 1e9), st.floats(0, 1))
def test_felix_mixes_and_stays_in_its_bounds(staleness: int, utility: float, c: float) -> None:
    got = Felix(c=c).weigh(view(staleness, utility))
    assert 0 < got.value <= 1
    assert got.value == min(c * got.parts["staleness"] + (1 - c) * got.parts["utility"], 1.0)
    assert 0.5 <= got.parts["utility"] <= 1.5


def test_felix_at_most_1_and_a_nan_is_not_rounded_up_to_it() -> None:
    assert Felix(c=0.0).weigh(view(0, 1e12)).value == 1.0
    assert np.isnan(Felix().weigh(view(0, float("nan"))).value)


@pytest.mark.parametrize("base", [Constant(), FedBuff(), Felix()])
def test_the_first_of_a_cycle_gets_the_base(base: Any) -> None:
    plain, got = base.weigh(view(3, 2.0)), GradAware(base=base, floor=0.5).weigh(view(3, 2.0))
    assert (got.value, got.gated) == (plain.value, False)
    assert got.parts == {"base": plain.value, **plain.parts, "align": 1.0}


@pytest.mark.parametrize(
    ("degrees", "floor", "align"),
    [
        (0, 0.0, 1.0),
        (89, 0.0, 1.0),
        (120, 0.0, 0.5),
        (180, 0.0, 0.0),
        (120, -0.5, 1.0),
        (60, 1.0, 0.75),
        (90, 0.5, 2 / 3),
        (180, 0.5, 0.0),
    ],
)
def test_the_gate_lowers_what_points_away(degrees: float, floor: float, align: float) -> None:
    got = GradAware(base=FedBuff(), floor=floor).weigh(view(3, delta=at(degrees * pi / 180), running=EAST))
    assert got.value == pytest.approx(0.5 * align, abs=1e-12)
    assert got.gated == (align < 1)
    assert got.parts["align"] == pytest.approx(align, abs=1e-12)
    assert got.parts["cos"] == pytest.approx(cos(degrees * pi / 180), abs=1e-12)


@given(st.floats(0, pi), st.floats(-0.99, 1), st.floats(0.01, 100), st.floats(0.01, 100))
def test_the_gate_sees_the_angle_alone(angle: float, floor: float, mine: float, theirs: float) -> None:
    """An independent re-implementation, and lengths play no part. Never under 0, also where cos rounds past -1."""
    got = GradAware(base=Constant(), floor=floor).weigh(view(delta=at(angle, mine), running=theirs * EAST))
    c = cos(angle)
    assert got.value == pytest.approx((c + 1) / (floor + 1) if c < floor else 1.0, abs=1e-6)
    assert 0 <= got.value <= 1


@pytest.mark.parametrize(("delta", "running"), [([0.0, 0.0], EAST), ([1.0, 0.0], np.zeros(2)), ([1e300, 1e300], 1e300 * EAST)])
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
def test_where_there_is_no_angle_there_is_no_gate(delta: list[float], running: Any) -> None:
    got = GradAware(base=Constant(), floor=1.0).weigh(view(delta=delta, running=running))
    assert (got.value, got.gated, "cos" in got.parts) == (1.0, False, False)


@pytest.mark.parametrize(("var_ref", "factor"), [(None, 1.0), (12.5, 1.0), (13.0, 1.0), (2.5, 0.2)])
def test_inverse_variance_is_by_the_second_moment_per_coordinate(var_ref: float | None, factor: float) -> None:
    """||(3, -4)||^2 / 2 = 12.5."""
    got = GradAware(base=Constant(), var_ref=var_ref).weigh(view())
    assert got.value == pytest.approx(factor)
    assert got.gated is False
    assert ("inverse_variance" in got.parts) == (var_ref is not None)


def test_a_zero_update_has_the_full_weight_whatever_var_ref_says() -> None:
    assert GradAware(base=Constant(), var_ref=0.1).weigh(view(delta=[0.0, 0.0])).value == 1.0


def test_float32_uploads_are_weighed_in_float64() -> None:
    wide = GradAware(floor=1.0).weigh(view(delta=at(1.0), running=EAST))
    single = GradAware(floor=1.0).weigh(view(delta=at(1.0).astype(np.float32), running=EAST))
    assert single.value == pytest.approx(wide.value, rel=1e-6)
    assert type(single.value) is float


def test_in_thousands_of_coordinates_the_gate_is_nearly_inert() -> None:
    """cos ~ N(0, 1/p): half are gated at floor 0, by a factor near 1."""
    rng, size = np.random.default_rng(1), 10_000
    got = [GradAware(base=Constant()).weigh(view(delta=rng.normal(size=size), running=rng.normal(size=size))) for _ in range(200)]
    assert 70 < sum(weight.gated for weight in got) < 130
    assert min(weight.value for weight in got) > 0.95


@pytest.mark.parametrize(
    ("written", "rate"),
    [
        ("fedbuff", FedBuff()),
        ("felix", Felix(c=0.4, a=0.25, b=0.1)),
        ("grad_aware", GradAware(base=Felix(), floor=0.0)),
        ({"type": "grad_aware", "base": "fedbuff", "floor": 0.2}, GradAware(base=FedBuff(), floor=0.2)),
        ({"type": "grad_aware", "base": {"type": "felix", "c": 0.5}}, GradAware(base=Felix(c=0.5))),
    ],
)
def test_a_rate_is_written_by_name_or_spelled_out(written: Any, rate: Any) -> None:
    assert TypeAdapter(Rate).validate_python(written) == rate


@pytest.mark.parametrize(
    "wrong",
    [
        {"type": "felix", "c": 1.1},
        {"type": "felix", "a": 0},
        {"type": "grad_aware", "floor": -1},
        {"type": "grad_aware", "floor": 1.1},
        {"type": "grad_aware", "var_ref": 0},
        {"type": "grad_aware", "base": "grad_aware"},
        {"type": "fedbuff", "a": 1},
    ],
)
def test_numbers_that_mean_nothing_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(Rate).validate_python(wrong)


def test_only_the_gate_wants_the_running_sum() -> None:
    assert [rate.wants_running for rate in (Constant(), FedBuff(), Felix(), GradAware())] == [False, False, False, True]
