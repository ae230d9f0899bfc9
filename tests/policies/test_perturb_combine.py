"""What is uploaded of the slopes: single, guided, mean_of, best_of, against loops and the oracles of section 11."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError
from scipy.integrate import quad
from scipy.stats import chi2

from flame.core.rng import derive
from flame.learn.params import Layout, half_variance, tensor
from flame.policies.perturb import BestOf, Guided, MeanOf, Perturb, Single, Split
from flame.policies.perturb.noise import Distribution, direction

LAYOUT = Layout(("weight", "bias"), ((2, 3), (2,)))
PROBES = np.arange(1.0, 13.0).reshape(4, 3)


@pytest.mark.parametrize("policy", [MeanOf(probes=5), BestOf(probes=5), BestOf(probes=5, coin=True)])
@pytest.mark.parametrize("distribution", ["gaussian", "rademacher", "sphere"])
def test_the_probes_are_the_first_of_the_seed(policy: Any, distribution: Distribution) -> None:
    drawn = policy.model_copy(update={"distribution": distribution}).draw(9, LAYOUT, np.ones(8))
    assert drawn.tolist() == [direction(9, index, 8, distribution).tolist() for index in range(5)]


@pytest.mark.parametrize("policy", [MeanOf(), BestOf(), BestOf(coin=True)])
def test_only_guided_may_receive_u(policy: Any) -> None:
    assert not any(policy.wants_direction(version, data_id) for version in range(4) for data_id in range(4))


@pytest.mark.parametrize("policy", [Single(), Guided()])
def test_one_probe_is_sent_as_d_v(policy: Any) -> None:
    sent = policy.combine(7, np.array([-2.0]), PROBES[:1])
    assert (sent.delta.tolist(), sent.index, sent.scalars.tolist()) == ([-2.0, -4.0, -6.0], 0, [-2.0])


def test_mean_of_is_the_mean_in_the_order_of_the_probes() -> None:
    sent = MeanOf(probes=4).combine(7, np.array([1.0, 0.0, -1.0, 2.0]), PROBES)
    assert sent.delta.tolist() == [(1 - 7 + 20) / 4, (2 - 8 + 22) / 4, (3 - 9 + 24) / 4]
    assert (sent.index, sent.scalars.tolist()) == (None, [1.0, 0.0, -1.0, 2.0])


@given(st.integers(0, 2**64 - 1), st.integers(1, 12))
def test_mean_of_has_the_bits_of_a_plain_loop(seed: int, count: int) -> None:
    """So what is rebuilt probe by probe from seed and scalars is the same."""
    probes = MeanOf(probes=count).draw(seed, LAYOUT, None)
    slopes = np.array([derive(seed, "slope", i) / 2**64 - 0.5 for i in range(count)])
    total = slopes[0] * direction(seed, 0, 8, "gaussian")
    for index in range(1, count):
        total = total + slopes[index] * direction(seed, index, 8, "gaussian")
    assert MeanOf(probes=count).combine(seed, slopes, probes).delta.tobytes() == (total / count).tobytes()


def test_of_one_probe_all_are_single() -> None:
    probes, slopes = Single().draw(5, LAYOUT, None), np.array([0.3])
    deltas = {policy.combine(5, slopes, probes).delta.tobytes() for policy in (Single(), MeanOf(), BestOf(), BestOf(coin=True))}
    assert len(deltas) == 1
    assert MeanOf(probes=1).draw(5, LAYOUT, None).tolist() == probes.tolist()


@pytest.mark.parametrize(
    ("slopes", "index"),
    [
        ([1.0, -3.0, 2.0, 0.0], 1),
        ([1.0, 2.0, -2.0, 0.0], 1),
        ([0.0] * 4, 0),
        ([1.0, np.nan, 5.0, np.inf], 1),
        ([9.0, 1.0, 2.0, -np.inf], 3),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_best_of_takes_the_steepest_and_hides_nothing(slopes: list[float], index: int) -> None:
    """The first of equals; one that isn't finite before all others."""
    sent = BestOf(probes=4).combine(7, np.array(slopes), PROBES)
    assert sent.index == index
    np.testing.assert_array_equal(sent.delta, slopes[index] * PROBES[index])
    np.testing.assert_array_equal(sent.scalars, [slopes[index]])


def test_the_coin_flips_between_the_two_steepest_by_the_seed() -> None:
    slopes = np.array([1.0, -3.0, 2.0, 0.0])
    chosen = [BestOf(probes=4, coin=True).combine(seed, slopes, PROBES).index for seed in range(400)]
    assert Counter(chosen).keys() == {1, 2}
    assert 150 < chosen.count(1) < 250
    assert chosen == [BestOf(probes=4, coin=True).combine(seed, slopes, PROBES).index for seed in range(400)]
    assert BestOf(probes=4, coin=True).combine(3, np.array([1.0, np.nan, 2.0, 0.0]), PROBES).index == 1


def order_statistic(rank: int, of: int) -> float:
    """E of the rank-th largest (0: the largest) of `of` chi-squares with one degree of freedom: the integral of its survival."""

    def survival(x: float) -> float:
        above = chi2.sf(x, 1)
        binomial = [1.0]
        for k in range(rank + 1):
            binomial.append(binomial[-1] * (of - k) / (k + 1))
        return float(1 - sum(binomial[k] * above**k * (1 - above) ** (of - k) for k in range(rank + 1)))

    return float(quad(survival, 0, 60)[0])


def test_the_oracles_of_best_of_10() -> None:
    """E d^2 / ||g||^2 = 3.7996, coin 2.9855: by integral, and by what is sent (algorithms.md, section 11)."""
    largest, second = order_statistic(0, 10), order_statistic(1, 10)
    assert largest == pytest.approx(3.7996, abs=5e-4)
    assert (largest + second) / 2 == pytest.approx(2.9855, abs=5e-4)
    slopes, probes = np.random.default_rng(6).normal(size=(12_000, 10)), np.ones((10, 1))
    for coin, expected in ((False, 3.7996), (True, 2.9855)):
        policy = BestOf(coin=coin)
        assert np.mean([policy.combine(i, d, probes).scalars[0] ** 2 for i, d in enumerate(slopes)]) == pytest.approx(expected, rel=0.02)


def uploads(policy: Any, g: NDArray[np.float64], seeds: range) -> NDArray[np.float64]:
    layout = Layout(("w",), (g.shape,))
    drawn = ((seed, policy.draw(derive(8, seed), layout, None)) for seed in seeds)
    return np.stack([policy.combine(seed, probes @ g, probes).delta for seed, probes in drawn])


@pytest.mark.parametrize(("policy", "gain"), [(Single(), 1.0), (MeanOf(), 1.0), (BestOf(), 3.7996), (BestOf(coin=True), 2.9855)])
def test_the_mean_upload_is_along_g(policy: Any, gain: float) -> None:
    g = np.array([1.0, -2.0, 0.5])
    mean = uploads(policy, g, range(6000)).mean(axis=0)
    np.testing.assert_allclose(mean, gain * g, atol=0.25)


@pytest.mark.parametrize(("policy", "factor"), [(Single(), 1.0), (MeanOf(probes=10), 0.1), (BestOf(probes=10), 3.8)])
@pytest.mark.parametrize("n", [5, 6])
def test_the_gates_v_has_the_expected_mean(policy: Any, factor: float, n: int) -> None:
    """E[V] = 1/2 (1/floor(n/2) + 1/ceil(n/2)) (||g||^2 + ||g||^2/m) for single, 1/P of it for mean_of(P), 3.8 of it for best_of(10)."""
    g = np.linspace(-1, 1, 300)
    sent = [tensor(upload) for upload in uploads(policy, g, range(600 * n if factor == 1 else 120 * n))]
    found = np.mean([half_variance(sent[start : start + n]) for start in range(0, len(sent), n)])
    expected = 0.5 * (1 / (n // 2) + 1 / (n - n // 2)) * (g @ g) * (1 + 1 / len(g)) * factor
    assert found == pytest.approx(expected, rel=0.1)


@pytest.mark.parametrize(
    ("written", "policy"),
    [
        ("mean_of", MeanOf(probes=10)),
        ("best_of", BestOf(probes=10, coin=False)),
        ({"type": "best_of", "coin": True, "probes": 4}, BestOf(probes=4, coin=True)),
    ],
)
def test_it_is_written_by_name_or_spelled_out(written: Any, policy: Any) -> None:
    assert TypeAdapter(Perturb).validate_python(written) == policy


@pytest.mark.parametrize("wrong", [{"type": "mean_of", "probes": 0}, {"type": "best_of", "probes": 1.5}, {"type": "mean_of", "coin": True}])
def test_numbers_that_mean_nothing_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(Perturb).validate_python(wrong)


# ---- what an upload is worth


@pytest.mark.parametrize(
    ("policy", "worth"),
    [
        (Single(), 1), (Guided(candidates=10), 1), (MeanOf(probes=10), 10), (BestOf(probes=1), 1),
        (BestOf(probes=10), 3.7996), (BestOf(probes=10, coin=True), 2.9855), (Split(shares=4, of=MeanOf(probes=3)), 3),
        (Split(shares=2, of=BestOf(probes=10)), 3.7996), (BestOf(probes=2, coin=True), 1),
    ],
    ids=str,
)  # fmt: skip
def test_what_an_upload_is_worth_in_random_directions(policy: Any, worth: float) -> None:
    assert policy.worth == pytest.approx(worth, abs=5e-5)
    assert isinstance(policy.worth, float)


@pytest.mark.parametrize("count", [1, 2, 3, 10, 100, 256, 10_000])
def test_the_largest_squares_are_those_of_order_statistics(count: int) -> None:
    """E[max] = integral of P(X > x) over x of all, by scipy; with the coin, the mean of it and of the second one's."""
    largest = quad(lambda x: 1 - chi2.cdf(x, 1) ** count, 0, 80, limit=400, epsabs=1e-10)[0]
    assert BestOf(probes=count).worth == pytest.approx(largest, abs=1e-6)
    if count > 1:
        beta = lambda x: chi2.cdf(x, 1) ** count + count * chi2.cdf(x, 1) ** (count - 1) * chi2.sf(x, 1)  # noqa: E731
        second = quad(lambda x: 1 - beta(x), 0, 80, limit=400, epsabs=1e-10)[0]
        assert BestOf(probes=count, coin=True).worth == pytest.approx((largest + second) / 2, abs=1e-6)


@pytest.mark.parametrize("policy", [Single(), MeanOf(probes=10), BestOf(probes=10), BestOf(probes=10, coin=True)], ids=str)
def test_it_is_p_times_the_mean_squared_cosine(policy: Any) -> None:
    """4000 uploads at p = 400, slopes of a g of equal entries; within 6 per cent, which is 3 standard errors."""
    layout, found = Layout(("w",), ((400,),)), []
    g = np.ones(400) / 20
    for seed in range(4000):
        probes = policy.draw(seed, layout, None)
        delta = policy.combine(seed, probes @ g, probes).delta
        found.append((delta @ g) ** 2 / (delta @ delta))
    assert 400 * np.mean(found) == pytest.approx(policy.worth, rel=0.06)
