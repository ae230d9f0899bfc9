"""Perturbations: a function of (seed, index), with E[v v^T] = I; guided against plain loops."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from flame.learn.params import Layout
from flame.policies.perturb import Guided, Single
from flame.policies.perturb.noise import Distribution, direction

LAYOUT = Layout(("weight", "bias"), ((2, 3), (2,)))
DISTRIBUTIONS: list[Distribution] = ["gaussian", "rademacher", "sphere"]


def pinned(distribution: Distribution) -> list[float]:
    return [float(value) for value in direction(12345, 2, 3, distribution)]


def test_known_values_never_change() -> None:
    """A pair on two hosts stands on these numbers."""
    assert pinned("rademacher") == [-1.0, 1.0, 1.0]
    assert pinned("gaussian") == pytest.approx([0.792336628871926, -0.7134714019801905, 0.5813875841366236], abs=0)


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_a_probe_is_a_function_of_seed_and_index(distribution: Distribution) -> None:
    def probes() -> list[bytes]:
        return [direction(seed, index, 64, distribution).tobytes() for seed in range(5) for index in range(5)]

    assert probes() == probes()
    assert len(set(probes())) == 25


def test_probes_of_one_seed_do_not_overlap() -> None:
    """Probe 1 isn't a continuation of probe 0, so a chunk boundary can't be seen in it."""
    long = direction(7, 0, 400, "gaussian")
    other = direction(7, 1, 200, "gaussian")
    assert not np.isin(other, long).any()
    assert direction(7, 0, 200, "gaussian").tolist() == long[:200].tolist()


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_the_second_moment_is_the_identity(distribution: Distribution) -> None:
    probes = np.stack([direction(3, index, 3, distribution) for index in range(20_000)])
    np.testing.assert_allclose(probes.T @ probes / len(probes), np.eye(3), atol=0.05)
    np.testing.assert_allclose(probes.mean(axis=0), 0, atol=0.05)


def test_each_distribution_is_its_own() -> None:
    assert set(direction(1, 0, 1000, "rademacher").tolist()) == {-1.0, 1.0}
    assert np.linalg.norm(direction(1, 0, 1000, "sphere")) == pytest.approx(np.sqrt(1000))
    gaussian = direction(1, 0, 1000, "gaussian")
    np.testing.assert_allclose(gaussian / np.linalg.norm(gaussian), direction(1, 0, 1000, "sphere") / np.sqrt(1000))
    assert np.linalg.norm(gaussian) != pytest.approx(np.sqrt(1000))


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_single_is_probe_0(distribution: Distribution) -> None:
    probes = Single(distribution=distribution).draw(9, LAYOUT, None)
    assert probes.shape == (1, 8)
    assert probes[0].tolist() == direction(9, 0, 8, distribution).tolist()
    assert Single(distribution=distribution).draw(9, LAYOUT, np.ones(8)).tolist() == probes.tolist()


@pytest.mark.parametrize(("version", "data_id"), [(0, 1), (1, 1), (5, 3)])
def test_single_never_wants_u(version: int, data_id: int) -> None:
    assert Single().wants_direction(version, data_id) is False


@pytest.mark.parametrize(
    ("version", "data_id", "wants"),
    [(0, 0, False), (0, 1, False), (1, 0, False), (1, 1, True), (2, 2, False), (2, 3, True), (9, 1, True)],
)
def test_guided_wants_u_for_odd_bins_from_version_1_on(version: int, data_id: int, wants: bool) -> None:
    assert Guided().wants_direction(version, data_id) is wants


def test_guided_without_u_is_its_first_candidate() -> None:
    assert Guided().draw(9, LAYOUT, None).tolist() == [direction(9, 0, 8, "gaussian").tolist()]


def cosine(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    return float(one @ other / (np.linalg.norm(one) * np.linalg.norm(other)))


@given(st.integers(0, 2**64 - 1), st.integers(1, 12))
def test_guided_takes_per_tensor_the_candidate_nearest_to_u(seed: int, candidates: int) -> None:
    u = direction(77, 0, 8, "gaussian")
    drawn = [direction(seed, index, 8, "gaussian") for index in range(candidates)]
    expected = [max((each[part] for each in drawn), key=lambda v: cosine(v, u[part])) for part in (slice(0, 6), slice(6, 8))]
    probes = Guided(candidates=candidates).draw(seed, LAYOUT, u)
    assert probes.shape == (1, 8)
    assert probes[0].tolist() == np.concatenate(expected).tolist()


def test_guided_may_mix_candidates_and_does() -> None:
    u = direction(77, 0, 8, "gaussian")
    whole = {tuple(direction(5, index, 8, "gaussian").tolist()) for index in range(10)}
    assert tuple(Guided().draw(5, LAYOUT, u)[0].tolist()) not in whole


def test_guided_points_along_u_as_much_as_the_best_of_ten_does() -> None:
    """E z = 1.539 for the largest of ten normals (algorithms.md, section 2)."""
    u = direction(77, 0, 500, "gaussian")
    layout = Layout(("all",), ((500,),))
    along = [Guided().draw(seed, layout, u)[0] @ u / np.linalg.norm(u) for seed in range(400)]
    assert np.mean(along) == pytest.approx(1.539, abs=0.1)


def test_guided_looks_at_the_angle_and_not_at_the_length_of_u() -> None:
    u = direction(77, 0, 8, "gaussian")
    assert Guided().draw(5, LAYOUT, u).tolist() == Guided().draw(5, LAYOUT, 1000 * u).tolist()
    assert Guided().draw(5, LAYOUT, u.astype(np.float32)).dtype == np.float64
