"""The surrogate task: a model of a learner whose cost doesn't grow with the number of clients."""

import numpy as np
import pytest

from flame.config import Condition
from flame.core.rng import derive
from flame.core.tasks import Evaluate, Gradient
from flame.learn.learner import build
from flame.learn.params import tensor, vector, weighted_mean
from flame.learn.surrogate import SurrogateLearner


def learner(**changes) -> SurrogateLearner:
    built = build(Condition.model_validate({"task": "surrogate", "stop": {"cycles": 1}, **changes}))
    assert isinstance(built, SurrogateLearner)
    return built


@pytest.mark.parametrize("size", [1, 4, 77])
def test_the_upload_is_d_times_a_rademacher_probe(size):
    built = learner(surrogate={"parameters": size})
    got = built.run(Gradient("t3", 0, 0, 12345, built.facts.init))
    assert got.delta.shape == (size,)
    assert np.abs(vector(got.delta)) == pytest.approx(abs(got.derivative))
    assert got.utility == pytest.approx(got.samples * got.loss)


def test_it_is_a_function_of_seed_node_and_theta():
    built = learner()
    task = Gradient("t3", 0, 0, 1, built.facts.init)
    assert built.run(task) == learner().run(task)
    others = [Gradient("t3", 0, 0, 2, task.theta), Gradient("t4", 0, 0, 1, task.theta), Gradient("t3", 0, 0, 1, tensor(np.full(4, 0.5)))]
    assert all(built.run(other) != built.run(task) for other in others)


def test_its_uploads_lead_to_the_optimum():
    built = learner()
    theta = np.zeros(4)
    for step in range(300):
        now = tensor(theta)
        uploads = [built.run(Gradient(f"t{n}", step, 0, derive(step, n), now)).delta for n in range(10)]
        theta = theta - 0.1 * weighted_mean(uploads, [1.0] * 10)
    start, end = built.run(Evaluate(0, built.facts.init)), built.run(Evaluate(1, tensor(theta)))
    assert theta == pytest.approx(np.ones(4), abs=0.05)
    assert start.loss == 2.0
    assert end.loss < 0.01
    assert start.accuracy < end.accuracy <= 1


def test_it_keeps_nothing_per_client():
    built = learner(trainers=1000)
    before = {key: value for key, value in vars(built).items() if key not in ("_theta", "_gap", "_half_square")}
    for n in range(1000):
        built.run(Gradient(f"t{n:03}", 0, 0, n, built.facts.init))
    after = {key: value for key, value in vars(built).items() if key not in ("_theta", "_gap", "_half_square")}
    assert after == before
    assert built._gap.shape == (4,)


def test_facts_passes_and_rows_follow_the_condition():
    built = learner(surrogate={"bins": 50}, max_bins=20, batch_size=4, estimator={"type": "central_difference"}, eval={"rows": 9})
    assert built.facts.bins == 20
    got = built.run(Gradient("t0", 0, 0, 1, built.facts.init))
    assert (got.samples, got.passes) == (4, 2)
    assert built.run(Evaluate(0, built.facts.init)).samples == 9


def test_a_diverged_theta_is_answered_not_hidden():
    built = learner()
    lost = tensor(np.full(4, np.nan))
    assert np.isnan(built.run(Gradient("t0", 0, 0, 1, lost)).derivative)
    assert np.isnan(built.run(Evaluate(0, lost)).loss)
