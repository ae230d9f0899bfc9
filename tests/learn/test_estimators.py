"""The forward gradient against its oracles (algorithms.md, sections 2 and 11)."""

from math import gamma, pi, sqrt

import numpy as np
import pytest

from flame.config import Condition
from flame.config.condition import Estimator
from flame.core.rng import derive
from flame.core.tasks import Gradient
from flame.learn.estimators import AUTO_REACH, central_difference, forward_ad, local_step, self_check, step_size, utility
from flame.learn.params import Layout, tensor, vector
from flame.policies.perturb import Guided, Single
from flame.policies.perturb.noise import direction

from .objectives import Cubic, Linear, Quadratic, Samples

DISTRIBUTIONS = ("gaussian", "rademacher", "sphere")


def probes(distribution: str, count: int, size: int, seed: int = 1) -> np.ndarray:
    return np.stack([direction(derive(seed, distribution), i, size, distribution) for i in range(count)])


def condition(**changes) -> Condition:
    return Condition.model_validate({"stop": {"cycles": 1}, **changes})


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_the_forward_gradient_is_unbiased(distribution):
    g = np.array([1.0, -2.0, 0.5, 3.0])
    v = probes(distribution, 20000, 4)
    d = forward_ad(Linear(g), np.zeros(4), v).d
    assert np.mean(d[:, None] * v, axis=0) == pytest.approx(g, abs=0.15)


@pytest.mark.parametrize(("distribution", "factor"), [("gaussian", 1), ("rademacher", -1), ("sphere", -1)])
@pytest.mark.parametrize("k", [1, 4])
def test_its_mean_squared_error_depends_on_distribution_and_probes(distribution, factor, k):
    size, trials = 20, 6000
    g = np.linspace(-1, 1, size)
    v = probes(distribution, trials * k, size)
    means = ((v @ g)[:, None] * v).reshape(trials, k, size).mean(axis=1)
    error = np.mean(np.sum((means - g) ** 2, axis=1)) / (g @ g)
    assert error == pytest.approx((size + factor) / k, rel=0.05)


def test_cosine_of_one_probe_with_the_gradient():
    size = 50
    g = np.linspace(0.1, 1, size)
    v = probes("gaussian", 20000, size)
    cosines = np.abs(v @ g) / np.linalg.norm(v, axis=1) / np.linalg.norm(g)
    expected = gamma(size / 2) / (sqrt(pi) * gamma((size + 1) / 2))
    assert expected == pytest.approx(0.113403, abs=1e-6)
    assert np.mean(cosines) == pytest.approx(expected, rel=0.02)
    assert np.mean(cosines**2) == pytest.approx(1 / size, rel=0.03)


@pytest.mark.parametrize("h", [1e-3, 0.1, 10.0])
def test_central_difference_is_exact_on_quadratics(h):
    rng = np.random.default_rng(5)
    root = rng.normal(size=(6, 6))
    objective, theta, v = Quadratic(root @ root.T, rng.normal(size=6)), rng.normal(size=6), rng.normal(size=(3, 6))
    got, exact = central_difference(objective, theta, v, h), forward_ad(objective, theta, v)
    assert got.d == pytest.approx(exact.d, rel=1e-9, abs=1e-8)
    assert got.passes == 6
    assert exact.passes == 3


def test_central_difference_is_off_by_h2_cv3_on_a_cubic():
    c, theta, v, h = np.array([1.0, 2.0, -1.0]), np.array([0.3, 0.1, 0.2]), np.array([[0.5, 1.0, 0.7]]), 0.1
    gap = central_difference(Cubic(c), theta, v, h).d - forward_ad(Cubic(c), theta, v).d
    assert gap[0] == pytest.approx(h**2 * (c @ v[0]) ** 3, rel=1e-9)


def test_central_difference_perturbs_a_copy_and_reports_the_mean_loss():
    theta, v, h = np.array([1.0, 2.0]), np.array([[1.0, -1.0]]), 0.5
    theta.flags.writeable = False
    objective = Quadratic(np.eye(2), np.zeros(2))
    got = central_difference(objective, theta, v, h)
    assert got.losses == pytest.approx((objective.losses(theta + h * v[0]) + objective.losses(theta - h * v[0])) / 2)


def test_auto_keeps_the_length_of_the_step():
    assert step_size("auto", 400) == AUTO_REACH / 20
    assert step_size(0.01, 400) == 0.01


def test_utility_is_the_bin_size_times_the_root_mean_square_loss():
    assert utility(np.array([1.0, 2.0, 2.0], np.float32)) == pytest.approx(3 * sqrt(3.0))


@pytest.mark.parametrize("kind", ["forward_ad", "central_difference"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_upload_is_d_v_in_the_type_of_theta(kind, dtype):
    layout, g = Layout(("w",), ((5,),)), np.arange(5.0)
    task = Gradient("t0", 0, 0, 77, tensor(np.zeros(5, dtype)))
    got = local_step(condition(estimator={"type": kind}), layout, Linear(g), task)
    v = Single().draw(77, layout, None)[0]
    assert str(vector(got.delta).dtype) == dtype
    assert vector(got.delta) == pytest.approx((g @ v) * v, rel=1e-4, abs=1e-4)
    assert got.derivative == pytest.approx(g @ v, rel=1e-4, abs=1e-4)
    assert (got.samples, got.probes) == (1, 1)
    assert got.passes == (1 if kind == "forward_ad" else 2)
    assert got.loss == pytest.approx(1.0, abs=1e-6)


def test_backprop_uploads_the_gradient():
    got = local_step(
        condition(estimator={"type": "backprop"}),
        Layout(("w",), ((3,),)),
        Linear(np.arange(3.0)),
        Gradient("t0", 0, 0, 1, tensor(np.zeros(3))),
    )
    assert vector(got.delta).tolist() == [0.0, 1.0, 2.0]
    assert (got.probes, got.derivative) == (0, 0.0)


def test_the_same_probe_serves_every_estimator():
    layout, task = Layout(("w",), ((6,),)), Gradient("t0", 0, 0, 9, tensor(np.ones(6)))
    objective = Quadratic(np.eye(6), np.arange(6.0))
    forward, central = (
        local_step(condition(estimator={"type": kind}), layout, objective, task) for kind in ("forward_ad", "central_difference")
    )
    assert vector(forward.delta) == pytest.approx(vector(central.delta), rel=1e-9)


def test_a_probe_is_its_own_whatever_was_drawn_before():
    together = [direction(5, i, 33, "gaussian") for i in range(6)]
    alone = [direction(5, i, 33, "gaussian") for i in (4, 0, 2)]
    assert all(np.array_equal(together[i], one) for i, one in zip((4, 0, 2), alone, strict=True))
    assert len({tuple(v) for v in together}) == 6
    assert not np.array_equal(direction(6, 0, 33, "gaussian"), together[0])


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_probes_are_isotropic(distribution):
    v = probes(distribution, 20000, 3)
    assert v.T @ v / len(v) == pytest.approx(np.eye(3), abs=0.04)
    assert abs(v.mean()) < 0.02


def test_guided_keeps_the_best_of_ten_by_cosine():
    layout, u = Layout(("w",), ((800,),)), np.linspace(-1, 1, 800)
    u /= np.linalg.norm(u)
    z = np.array([Guided().draw(derive(1, "guided", i), layout, u)[0] @ u for i in range(1500)])
    assert z.mean() == pytest.approx(1.539, abs=0.05)
    assert np.mean(z**2) == pytest.approx(2.71, abs=0.15)


def test_guided_is_biased_as_the_formula_says():
    layout = Layout(("a", "b"), ((200,), (300,)))
    rng = np.random.default_rng(2)
    u = {name: rng.normal(size=part.stop - part.start) for name, part, _ in layout.slices()}
    u = {name: values / np.linalg.norm(values) for name, values in u.items()}
    towards = np.concatenate([u["a"], u["b"]])
    g = np.concatenate([2.0 * u["a"], -1.0 * u["b"]])
    v = np.stack([Guided().draw(derive(3, i), layout, towards)[0] for i in range(3000)])
    upload = np.mean((v @ g)[:, None] * v, axis=0)
    along = {name: upload[part] @ u[name] for name, part, _ in layout.slices()}
    z, z2 = 1.539, 2.71
    assert along["a"] == pytest.approx(2.0 + (z2 - 1) * 2.0 + z**2 * -1.0, abs=0.25)
    assert along["b"] == pytest.approx(-1.0 + (z2 - 1) * -1.0 + z**2 * 2.0, abs=0.25)


def test_guided_without_a_direction_is_its_first_candidate():
    layout = Layout(("w",), ((7,),))
    assert np.array_equal(Guided().draw(4, layout, None), Single().draw(4, layout, None))


class TestSelfCheck:
    """An instrument that doesn't measure must say so before the run."""

    def test_passes_on_a_sound_objective(self):
        for kind in ("forward_ad", "central_difference", "backprop"):
            assert self_check(Quadratic(np.eye(9), np.ones(9)), np.zeros(9), Estimator(type=kind)) != 0

    def test_names_a_missing_tangent_and_its_remedy(self):
        with pytest.raises(ArithmeticError, match=r"tangent is missing[^$]*hint: [^$]*eager"):
            self_check(Samples(np.ones(4), slope=0.0), np.zeros(9), Estimator())

    def test_names_two_that_disagree(self):
        class Halved(Linear):
            def jvp(self, theta, probes):
                losses, slopes = super().jvp(theta, probes)
                return losses, slopes / 2

        with pytest.raises(ArithmeticError, match=r"forward mode says .* backprop says [^$]*hint:"):
            self_check(Halved(np.arange(9.0)), np.zeros(9), Estimator())

    def test_looks_at_forward_mode_only_where_it_is_used(self):
        class NoForwardMode(Linear):
            def jvp(self, theta, probes):
                raise AssertionError("not to be asked")

        assert self_check(NoForwardMode(np.arange(9.0)), np.zeros(9), Estimator(type="central_difference")) != 0

    def test_a_missing_tangent_is_an_error_in_mid_run_too(self):
        with pytest.raises(ArithmeticError, match="tangent is missing"):
            local_step(condition(), Layout(("w",), ((3,),)), Samples(np.ones(4), slope=0.0), Gradient("t0", 0, 0, 1, tensor(np.zeros(3))))

    def test_a_loss_of_zero_may_be_flat(self):
        got = local_step(
            condition(), Layout(("w",), ((3,),)), Samples(np.zeros(4), slope=0.0), Gradient("t0", 0, 0, 1, tensor(np.zeros(3)))
        )
        assert not vector(got.delta).any()


class TestSeveralProbes:
    """The step with P probes: what is tried, what is sent, what is counted."""

    LAYOUT, G = Layout(("w",), ((6,),)), np.arange(6.0)

    def sent(self, perturb, kind="forward_ad"):
        changed = condition(estimator={"type": kind}, perturb=perturb)
        return local_step(changed, self.LAYOUT, Linear(self.G), Gradient("t0", 0, 0, 77, tensor(np.zeros(6))))

    @pytest.mark.parametrize(("kind", "passes"), [("forward_ad", 4), ("central_difference", 8)])
    def test_mean_of_sends_the_mean(self, kind, passes):
        got = self.sent({"type": "mean_of", "probes": 4}, kind)
        v = np.stack([direction(77, i, 6, "gaussian") for i in range(4)])
        assert vector(got.delta) == pytest.approx(np.mean((v @ self.G)[:, None] * v, axis=0), rel=1e-9)
        assert (got.probes, got.passes) == (4, passes)
        assert got.derivative == pytest.approx(v[0] @ self.G)

    def test_best_of_sends_the_steepest(self):
        got = self.sent({"type": "best_of", "probes": 4})
        v = max((direction(77, i, 6, "gaussian") for i in range(4)), key=lambda v: abs(v @ self.G))
        assert vector(got.delta) == pytest.approx((v @ self.G) * v, rel=1e-9)
        assert (got.probes, got.passes) == (4, 4)
        assert got.derivative == pytest.approx(v @ self.G)


def test_a_share_of_the_parameters_may_be_flat() -> None:
    """A layer below a head of zeros has no slope, and that is no missing tangent; along all parameters it is."""
    objective = Samples(np.ones(3), slope=0.0)
    assert forward_ad(objective, np.zeros(4), np.array([[1.0, -1.0, 0.0, 0.0]])).d.tolist() == [0.0]
    with pytest.raises(ArithmeticError, match="tangent is missing"):
        forward_ad(objective, np.zeros(4), np.array([[1.0, -1.0, 2.0, 0.5]]))
