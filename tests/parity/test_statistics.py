"""The statistics against known values, their false alarms on dependent series, and what they admit not to know."""

import numpy as np
import pytest
from scipy import stats

from parity.measures import statistics
from parity.measures.statistics import ALPHA, block_length, distance, gap, holm, ks, mean, outcome, quantile_share, ratio, variation


def ar(phi: float, n: int, generator: np.random.Generator) -> np.ndarray:
    """A stationary AR(1) series."""
    series, noise = np.zeros(n + 100), generator.standard_normal(n + 100)
    for place in range(1, n + 100):
        series[place] = phi * series[place - 1] + noise[place]
    return series[100:]


@pytest.mark.parametrize("ties", [False, True])
def test_ks_is_scipys(ties: bool) -> None:
    generator = np.random.default_rng(5)
    one, two = generator.normal(0, 1, 40), generator.normal(0.5, 1, 70)
    if ties:
        one, two = one.round(), two.round()
    assert ks(one, two, 0.2).effect == pytest.approx(stats.ks_2samp(one, two).statistic)


def test_the_critical_value_of_independent_samples_is_the_tables() -> None:
    generator = np.random.default_rng(6)
    measure = ks(generator.standard_normal(100), generator.standard_normal(100), 0.2)
    assert measure.critical == pytest.approx(1.63 * np.sqrt(2 / 100), rel=0.15)


def test_means_are_relative_when_asked() -> None:
    assert mean([10, 10], [11, 11], 0.05, relative=True).effect == pytest.approx(0.1)
    assert mean([10, 10], [11, 11], 0.05).effect == pytest.approx(1.0)
    assert mean([0, 0], [1, 1], 0.05, relative=True).effect == 1.0


def test_the_gap_of_aligned_series_is_absolute() -> None:
    assert gap([1, 2, 3], [2, 1, 3], 0.05).effect == pytest.approx(2 / 3)


def test_nothing_has_no_statistic() -> None:
    with pytest.raises(ValueError, match="over nothing"):
        ks([], [1.0], 0.2)


@pytest.mark.parametrize("phi", [0.0, 0.5, 0.8, 0.95])
@pytest.mark.parametrize("aligned", [False, True])
def test_equal_dependent_series_are_seldom_rejected(phi: float, aligned: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The iid table rejects 8, 34, 76 % at phi 0.5, 0.8, 0.95 and a nominal 5 %."""
    monkeypatch.setattr(statistics, "DRAWS", 199)
    generator = np.random.default_rng(7)
    rejected = sum(ks(ar(phi, 100, generator), ar(phi, 100, generator), 0.2, aligned=aligned).p <= 0.05 for _ in range(100))
    assert rejected <= 12


def test_a_real_shift_is_seen() -> None:
    generator = np.random.default_rng(8)
    one, two = generator.standard_normal(200), generator.normal(1.0, 1, 200)
    for measure in (ks(one, two, 0.2), mean(one, two, 0.5), ks(one, two, 0.2, aligned=True)):
        assert measure.p <= ALPHA
        assert outcome(measure, rejected=True) is False


def test_a_shared_trend_doesnt_hide_agreement_of_aligned_series() -> None:
    trend = np.linspace(0, 10, 60)
    generator = np.random.default_rng(9)
    measure = mean(trend + generator.normal(0, 0.01, 60), trend + generator.normal(0, 0.01, 60), 0.05, aligned=True)
    assert outcome(measure, rejected=False) is True


def test_few_values_can_neither_pass_nor_fail() -> None:
    same = ks([1, 2, 3], [1, 2, 3], 0.2, aligned=True)
    assert outcome(same, rejected=False) is None
    other = ks([1, 2, 3], [7, 8, 9], 0.2)
    assert other.effect == 1.0
    assert other.p >= 0.1
    assert outcome(other, rejected=False) is None
    assert same.needs > same.n


def test_n_that_is_needed_falls_with_the_tolerance() -> None:
    generator = np.random.default_rng(10)
    one, two = generator.standard_normal(50), generator.standard_normal(50)
    needs = [ks(one, two, tol).needs for tol in (0.1, 0.2)]
    assert needs[0] == pytest.approx(4 * needs[1], rel=0.05)


def test_blocks_grow_with_dependence() -> None:
    generator = np.random.default_rng(11)
    lengths = [block_length(ar(phi, 300, generator), ar(phi, 300, generator), False) for phi in (0.0, 0.5, 0.9)]
    assert lengths == sorted(lengths)
    assert lengths[0] <= 4
    assert block_length(np.ones(10), np.ones(10) + 0.1, True) <= 2


def test_a_report_is_a_function_of_its_numbers() -> None:
    generator = np.random.default_rng(12)
    one, two = generator.standard_normal(30), generator.standard_normal(30)
    assert ks(one, two, 0.2) == ks(one, two, 0.2)


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(13)
    one, two = generator.standard_normal(30), generator.standard_normal(40)
    monkeypatch.setattr(statistics, "CELLS", 700)
    assert ks(one, two, 0.2).p == pytest.approx(stats.ks_2samp(one, two).pvalue, abs=0.1)


def test_holm_steps_down() -> None:
    assert holm([0.001, 0.004, 0.9], 0.01) == [True, True, False]
    assert holm([0.006, 0.004, 0.9], 0.01) == [False, False, False]
    assert holm([0.004, 0.003], 0.01) == [True, True]
    assert holm([]) == []


def test_a_share_over_a_limit_has_its_binomial_chance() -> None:
    over, chance = quantile_share([0.0] * 99 + [1.0], 0.5, 0.01)
    assert over == 1
    assert chance == pytest.approx(1 - 0.99**100)


def test_values_within_the_slack_count_as_equal() -> None:
    modelled = [0.3, 0.6] * 20
    jittered = [value + 0.001 * (place % 3) for place, value in enumerate(modelled)]
    assert ks(modelled, jittered, 0.2).effect > 0.3
    assert ks(modelled, jittered, 0.2, slack=0.01).effect == 0
    assert ks(modelled, [value + 0.2 for value in modelled], 0.2, slack=0.01).effect == 0.5
    assert ks([*modelled, 1.0], modelled, 0.2, slack=0.1).effect == pytest.approx(1 / 41)


def test_a_ratio_of_means_is_compared_whole() -> None:
    ups, downs = [2.0, 4.0] * 20, [1.0, 3.0] * 20
    same = ratio((ups, downs), (ups, downs), 0.3)
    assert (same.effect, outcome(same, rejected=False)) == (0, True)
    apart = ratio((ups, downs), (ups, [2 * down for down in downs]), 0.3)
    assert apart.effect == pytest.approx(0.75)
    assert apart.p < ALPHA


def test_shares_of_classes_are_compared_by_their_variation() -> None:
    assert variation([0, 1, 2] * 30, [2, 1, 0] * 30, 0.15).effect == 0
    apart = variation([0, 1, 2] * 30, [0, 0, 2] * 30, 0.15)
    assert apart.effect == pytest.approx(1 / 3)
    assert apart.p < ALPHA


def test_the_distance_alone_is_that_of_ks() -> None:
    assert distance([1, 2, 3], [2, 3, 4]) == ks([1, 2, 3], [2, 3, 4], 0.2).effect
