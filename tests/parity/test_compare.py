"""Differences are told in the manner of numpy.testing."""

from math import nan

from parity.measures.compare import equal, show, show_both


def _series(*values: object) -> dict[str, object]:
    return {f"cycle {number}": value for number, value in enumerate(values)}


def test_equal_series_pass_with_their_number() -> None:
    finding = equal("cycles", _series(1, nan, None), _series(1, nan, None))
    assert (finding.ok, finding.n, finding.reason) == (True, 3, "3 cycles equal")


def test_the_first_five_differences_are_told_and_the_largest() -> None:
    finding = equal("cycles", _series(*range(1, 11)), _series(*range(2, 12)))
    assert finding.reason == "10 of 10 cycles differ (100.0 %), first at cycle 0"
    assert finding.detail[0] == "cycle 0: real 1   sim 2"
    assert finding.detail[5:] == ("and 5 more", "largest absolute difference 1, relative 1")


def test_a_difference_from_zero_is_infinitely_large() -> None:
    assert "relative inf" in equal("cycles", _series(0), _series(1)).detail[-1]


def test_a_place_that_is_missing_is_nothing() -> None:
    finding = equal("cycles", _series(1, 2), _series(1))
    assert finding.detail == ("cycle 1: real 2   sim nothing",)
    assert equal("cycles", _series(1), _series(1, 2)).reason == "1 of 2 cycles differs (50.0 %), first at cycle 1"


def test_of_mappings_only_what_differs_is_told() -> None:
    finding = equal("choices", {"c": {"chosen": ["a", "b"], "K": 3, "x": None}}, {"c": {"chosen": ["a", "c"], "K": 3, "x": 1}})
    assert finding.detail == ("c: chosen real [a b]   sim [a c]; x real -   sim 1",)


def test_long_lists_are_told_from_where_they_part() -> None:
    one, two = [f"t{number}" for number in range(40)], [f"t{number}" for number in range(40)]
    two[20] = "t99"
    real, sim = show_both(one, two)
    assert real == "[... t18 t19 t20 t21 t22 t23 t24 t25 ... of 40]"
    assert sim == "[... t18 t19 t99 t21 t22 t23 t24 t25 ... of 40]"
    assert show_both(one, one[:-1])[1] == "[... t37 t38]"


def test_values_are_shown_plainly() -> None:
    assert show({"a": 1, "b": [1, None]}) == "a 1, b [1 -]"
