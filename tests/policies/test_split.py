"""Shares of the tensors: all are covered, in turn, and a covering cohort's mean is an unbiased gradient."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from flame.config import Condition, ConfigError
from flame.core.rng import derive
from flame.learn.learner import build
from flame.learn.params import Layout
from flame.policies.perturb import BestOf, Guided, MeanOf, Single, Split

LAYOUT = Layout(("a", "b", "c", "d", "e"), ((2, 3), (2,), (1,), (4,), (3,)))
SEEDS = st.integers(0, 2**64 - 1)


def moved(split: Split, turn: int, layout: Layout = LAYOUT, seed: int = 12345) -> list[str]:
    """Names of the tensors that the assign of that turn probes."""
    (probe,) = split.draw(split.dealt(seed, turn), layout, None)
    names = [name for name, part, _ in layout.slices() if probe[part].any()]
    assert np.count_nonzero(probe) == sum(part.stop - part.start for name, part, _ in layout.slices() if name in names)
    return names


def test_neighbours_share() -> None:
    """floor(i S / T) for five tensors: 0 0 0 1 1 of two, 0 0 1 1 2 of three."""
    assert [moved(Split(shares=2), turn) for turn in (0, 1, 2)] == [["a", "b", "c"], ["d", "e"], ["a", "b", "c"]]
    assert [moved(Split(shares=3), turn) for turn in (3, 4, 5)] == [["a", "b"], ["c", "d"], ["e"]]


@given(st.integers(1, 12), st.data(), SEEDS, st.integers(0, 10**9))
def test_assigns_in_a_row_cover_each_tensor_once(tensors: int, data: st.DataObject, seed: int, first: int) -> None:
    layout = Layout(tuple(f"t{i}" for i in range(tensors)), tuple((i % 3 + 1,) for i in range(tensors)))
    split = Split(shares=data.draw(st.integers(1, tensors)))
    covered = [name for turn in range(first, first + split.shares) for name in moved(split, turn, layout, seed)]
    assert sorted(covered) == sorted(layout.names)


@given(SEEDS, st.integers(1, 256), st.integers(0, 10**9))
def test_a_dealt_seed_has_64_bits_and_says_its_share(seed: int, shares: int, turn: int) -> None:
    dealt = Split(shares=shares).dealt(seed, turn)
    assert 0 <= dealt < 2**64
    assert dealt % shares == turn % shares


@given(SEEDS)
def test_one_share_is_the_whole_perturbation(seed: int) -> None:
    for inner in (Single(), MeanOf(probes=3), Guided(candidates=3)):
        towards = np.linspace(-1, 1, LAYOUT.size)
        assert Split(shares=1, of=inner).draw(seed, LAYOUT, towards).tobytes() == inner.draw(seed, LAYOUT, towards).tobytes()


@pytest.mark.parametrize("inner", [Single(), Single(distribution="sphere"), MeanOf(probes=2, distribution="rademacher")])
def test_the_mean_over_a_covering_cohort_is_an_unbiased_gradient(inner: Any) -> None:
    """L linear, so d = <g, v>. Over 4000 cohorts of S = 3, (1/S) sum S d v has the mean g, within five standard errors."""
    split, g = Split(shares=3, of=inner), np.linspace(-2, 3, LAYOUT.size)
    means = np.array([cohort_mean(split, g, number) for number in range(4000)])
    error = means.std(axis=0) / len(means) ** 0.5
    assert np.all(np.abs(means.mean(axis=0) - g) < 5 * error)
    assert np.all(error < 0.2)


def test_the_variance_of_a_cohort_is_that_of_its_parts() -> None:
    """E ||mean - g||^2 = sum over shares of (p_s + 1) ||g_s||^2 for one gaussian probe each (algorithms.md, section 11)."""
    split, g = Split(shares=3), np.linspace(-2, 3, LAYOUT.size)
    errors = [np.sum((cohort_mean(split, g, number) - g) ** 2) for number in range(8000)]
    blocks = [slice(0, 8), slice(8, 13), slice(13, 16)]
    expected = sum((g[block].size + 1) * np.sum(g[block] ** 2) for block in blocks)
    assert np.mean(errors) == pytest.approx(expected, rel=0.06)


def cohort_mean(split: Split, g: Any, number: int) -> Any:
    """The mean of the uploads of S assigns in a row."""
    uploads = []
    for turn in range(split.shares):
        seed = split.dealt(derive(1, number, turn), turn)
        probes = split.draw(seed, LAYOUT, None)
        uploads.append(split.combine(seed, probes @ g, probes).delta)
    return np.mean(uploads, axis=0)


def test_guided_looks_along_its_share_of_u() -> None:
    """Per tensor the best of the candidates, as the whole perturbation keeps it on a model of that share alone."""
    split, towards = Split(shares=2, of=Guided(candidates=4)), np.linspace(-1, 1, LAYOUT.size)
    seed = split.dealt(99, 1)
    alone = Layout(LAYOUT.names[3:], LAYOUT.shapes[3:])
    assert split.draw(seed, LAYOUT, towards)[0, 9:].tolist() == split.of.draw(seed, alone, towards[9:])[0].tolist()
    assert split.wants_direction(1, 1)
    assert not split.wants_direction(0, 1)


@pytest.mark.parametrize("wrong", [{}, {"shares": 0}, {"shares": 257}, {"shares": 2, "of": {"type": "split", "shares": 2}}])
def test_numbers_that_mean_nothing_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Split.model_validate(wrong)


def test_more_shares_than_tensors_are_refused_before_a_run() -> None:
    """The toy has two: weight and bias."""
    plain = {"stop": {"cycles": 1}, "perturb": {"type": "split", "shares": 3}}
    with pytest.raises(ConfigError, match=r"`perturb\.shares` is 3, and there are 2 trainable tensors"):
        build(Condition.model_validate(plain))
    assert build(Condition.model_validate(plain | {"perturb": {"type": "split", "shares": 2, "of": "best_of"}})).facts.layout.names
    assert BestOf().dealt(7, 9) == 7
