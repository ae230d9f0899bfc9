"""The toy task: slopes, learning, determinism, and what it doesn't import."""

import os
import subprocess
import sys

import numpy as np
import pytest

from flame.config import Condition, ConfigError
from flame.core.rng import derive
from flame.core.tasks import Evaluate, Gradient
from flame.learn.learner import build
from flame.learn.params import tensor, vector, weighted_mean
from flame.learn.toy import SoftmaxRegression


def condition(**changes) -> Condition:
    return Condition.model_validate({"task": "toy", "stop": {"cycles": 1}, **changes})


def batch() -> tuple[SoftmaxRegression, np.ndarray]:
    rng = np.random.default_rng(1)
    return SoftmaxRegression(rng.normal(size=(6, 4)), rng.integers(0, 3, 6), 3), rng.normal(size=15)


def test_gradient_and_slopes_agree_with_differences():
    objective, theta = batch()
    losses, gradient = objective.gradient(theta)
    h, eye = 1e-6, np.eye(15)
    numeric = [(objective.losses(theta + h * e).mean() - objective.losses(theta - h * e).mean()) / (2 * h) for e in eye]
    assert gradient == pytest.approx(numeric, abs=1e-8)
    same, slopes = objective.jvp(theta, eye)
    assert slopes.mean(axis=1) == pytest.approx(gradient, abs=1e-12)
    assert np.array_equal(same, losses)


@pytest.mark.parametrize(
    ("estimator", "lr", "steps"), [("backprop", 1.0, 60), ("forward_ad", 0.05, 150), ("central_difference", 0.05, 150)]
)
def test_it_learns(estimator, lr, steps):
    learner = build(condition(estimator={"type": estimator}))
    theta, start = vector(learner.facts.init).copy(), learner.run(Evaluate(0, learner.facts.init))
    for step in range(steps):
        now = tensor(theta)
        tasks = [Gradient(f"t{n}", step, step % learner.facts.bins, derive(1, n, step), now) for n in range(10)]
        theta -= lr * weighted_mean([learner.run(task).delta for task in tasks], [1.0] * 10)
    end = learner.run(Evaluate(steps, tensor(theta)))
    assert start.loss == pytest.approx(np.log(3))
    assert end.loss < 0.75 * start.loss
    assert end.accuracy > 0.7


def test_facts_and_bins():
    learner = build(condition(toy={"features": 5, "classes": 4, "samples": 30}, batch_size=8, eval={"rows": 50}))
    assert learner.facts.bins == 3
    assert learner.facts.layout.shapes == ((4, 5), (4,))
    assert build(condition(max_bins=2)).facts.bins == 2
    got = learner.run(Gradient("t0", 0, 2, 1, learner.facts.init))
    assert (got.samples, got.delta.dtype, got.delta.shape) == (8, "float64", (24,))
    assert learner.run(Evaluate(0, learner.facts.init)).samples == 50


def test_a_guided_probe_takes_the_direction():
    learner = build(condition(perturb="guided"))
    task = Gradient("t0", 1, 1, 5, learner.facts.init)
    plain = learner.run(task).delta
    task.direction = tensor(np.ones(learner.facts.layout.size))
    assert learner.run(task).delta != plain


def test_the_seed_reaches_the_data_and_the_partition_shapes_it():
    one, two = build(condition(seed=1)), build(condition(seed=2))
    assert one.facts.data != two.facts.data
    assert build(condition(seed=1)).facts == one.facts
    assert build(condition(partition={"type": "niid_label", "alpha": 0.1})).facts.data != one.facts.data


def test_too_few_samples_is_a_clear_error():
    with pytest.raises(ConfigError, match=r"3 samples, fewer than one bin of `batch_size` 8\nhint: raise `toy.samples`"):
        build(condition(toy={"samples": 3}))


def test_an_unknown_bin_is_an_error():
    learner = build(condition())
    with pytest.raises(IndexError, match="no such bin"):
        learner.run(Gradient("t0", 0, 99, 1, learner.facts.init))


PRINT_BITS = """
import sys
from flame.config import Condition
from flame.core.tasks import Evaluate, Gradient
from flame.learn.learner import build
for task in ("toy", "surrogate"):
    skewed = {"partition": {"type": "niid_label"}} if task == "toy" else {}
    learner = build(Condition(task=task, stop={"cycles": 1}, **skewed))
    facts = learner.facts
    print(facts.data, facts.init.digest, learner.run(Gradient("t3", 1, 2, 99, facts.init)), learner.run(Evaluate(1, facts.init)))
print([name for name in ("torch", "transformers") if name in sys.modules])
"""


def test_bits_are_the_same_in_every_process_and_nothing_heavy_is_imported():
    outputs = [
        subprocess.run(
            [sys.executable, "-c", PRINT_BITS], capture_output=True, text=True, check=True, env={**os.environ, "PYTHONHASHSEED": seed}
        ).stdout
        for seed in ("0", "1", "42")
    ]
    assert len(set(outputs)) == 1
    assert outputs[0].splitlines()[-1] == "[]"
