"""The text learner: the cache changes no bit, the estimators agree, a broken model is refused."""

import os
import subprocess
import sys

import numpy as np
import pytest

from flame.core.rng import derive
from flame.core.tasks import Evaluate, Gradient
from flame.learn.params import tensor, vector, weighted_mean

pytestmark = pytest.mark.text
torch = pytest.importorskip("torch")

from flame.learn import network, text  # noqa: E402
from flame.learn.text import TextLearner  # noqa: E402

BITFIT = {"part": "bitfit", "last_layers": 1}


@pytest.fixture
def tiny_condition(text_condition, tiny):
    """A condition on the small set with a random BERT of three layers."""
    return lambda kind="bert", **changes: text_condition(model=str(tiny(kind)), **changes)


def off_start(learner: TextLearner):
    """A theta at which every slope can be seen."""
    rng = np.random.default_rng(5)
    return tensor((learner.init + 0.05 * rng.standard_normal(learner.init.size)).astype(np.float32))


@pytest.mark.parametrize("trainable", [{"part": "head"}, BITFIT])
@pytest.mark.parametrize("estimator", ["forward_ad", "central_difference", "backprop"])
def test_cached_and_uncached_give_the_same_bits(tiny_condition, trainable, estimator):
    condition = tiny_condition(trainable=trainable, estimator={"type": estimator})
    kept, read, computed = TextLearner(condition), TextLearner(condition), TextLearner(condition, prefix_cache=False)
    theta = off_start(kept)
    for task in (Gradient("t2", 1, 3, derive(1, "probe"), theta), Evaluate(1, theta)):
        results = [learner.run(task) for learner in (kept, read, computed)]
        assert results[0] == results[1] == results[2]
    assert read.counts()["prefix_hits"] > 0
    assert read.counts()["prefix_misses"] == 0
    assert computed.counts()["prefix_hits"] == 0
    assert (kept.notes, computed.notes) == ((), ("prefix cache off, as asked: activations are computed afresh each time",))


@pytest.mark.parametrize("kind", ["bert", "distilbert"])
def test_the_three_estimators_agree(tiny_condition, kind):
    slopes = {}
    for estimator in ("forward_ad", "central_difference", "backprop"):
        step = {"h": "auto"} if estimator == "central_difference" else {}
        learner = TextLearner(tiny_condition(kind, trainable=BITFIT, estimator={"type": estimator, **step}))
        slopes[estimator] = learner.run(Gradient("t1", 0, 0, 7, off_start(learner)))
    v = learner._condition.perturb.draw(7, learner.facts.layout, None)[0]
    d = vector(slopes["backprop"].delta).astype(np.float64) @ v
    assert slopes["forward_ad"].derivative == pytest.approx(d, rel=1e-4, abs=1e-5)
    assert slopes["central_difference"].derivative == pytest.approx(d, rel=1e-2, abs=1e-3)
    assert slopes["forward_ad"].loss == slopes["backprop"].loss
    assert slopes["central_difference"].loss == pytest.approx(slopes["backprop"].loss, abs=1e-3)
    assert vector(slopes["forward_ad"].delta) == pytest.approx((d * v).astype(np.float32), rel=1e-3, abs=1e-4)


def test_results_carry_what_the_protocol_says(tiny_condition):
    learner = TextLearner(tiny_condition(trainable=BITFIT))
    got = learner.run(Gradient("t1", 0, 0, 7, learner.facts.init))
    assert (got.delta.dtype, got.delta.shape, got.samples, got.probes, got.passes) == ("float32", (learner.facts.layout.size,), 8, 1, 1)
    assert got.loss == pytest.approx(np.log(4), rel=1e-6)
    assert got.utility == pytest.approx(8 * np.log(4), rel=1e-6)
    found = learner.run(Evaluate(0, learner.facts.init))
    assert (found.samples, len(found.recall), found.mcc) == (40, 4, 0.0)
    assert learner.facts.bins == 5


@pytest.mark.parametrize(("estimator", "lr", "accuracy"), [("backprop", 0.5, 0.5), ("forward_ad", 0.02, 0.35)])
def test_a_head_on_minilm_learns(text_condition, estimator, lr, accuracy):
    learner = TextLearner(text_condition(trainable={"part": "head"}, estimator={"type": estimator}))
    theta, start = learner.init.copy(), learner.run(Evaluate(0, learner.facts.init))
    for step in range(60):
        now = tensor(theta)
        uploads = [learner.run(Gradient(f"t{n}", step, step % 5, derive(step, n), now)).delta for n in range(4)]
        theta = theta - lr * weighted_mean(uploads, [1.0] * 4)
    end = learner.run(Evaluate(60, tensor(theta)))
    assert end.loss < 0.93 * start.loss
    assert end.accuracy >= accuracy


def test_warming_fills_every_batch_that_the_run_can_touch(tiny_condition, monkeypatch):
    condition = tiny_condition(trainable=BITFIT, tokens=12, stop={"cycles": 1})
    monkeypatch.setattr(text, "ALONE", 6)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    learner = TextLearner(condition)
    assert len(learner.batches()) == 4 * 2 + 2
    learner.warm()
    fresh = TextLearner(condition)
    assert fresh._prefix.missing(fresh.batches()) == []
    alone = TextLearner(condition, prefix_cache=False)
    for rows in fresh.batches():
        assert torch.equal(fresh.objective(rows).x, alone.objective(rows).x)
    assert fresh.counts()["prefix_misses"] == 0
    fresh.warm()


@pytest.mark.parametrize("shares", [1, 2, 3, 4, 5])
def test_shares_cover_every_batch(tiny_condition, shares, monkeypatch):
    learner = TextLearner(tiny_condition(trainable={"part": "head"}))
    touched: list[tuple[int, ...]] = []
    monkeypatch.setattr(learner._prefix, "missing", lambda batches: batches)
    monkeypatch.setattr(learner._prefix, "get", lambda rows: touched.append(tuple(rows)))
    for share in range(shares):
        learner.fill(share, shares)
    assert set(touched) == {tuple(rows) for rows in learner.batches()}


def test_where_the_cache_has_nothing_to_keep_it_says_so(tiny_condition):
    learner = TextLearner(tiny_condition("albert", trainable={"part": "bitfit"}))
    assert "nothing lies below the first trainable parameter" in learner.notes[0]
    learner.warm()
    learner.run(Gradient("t1", 0, 0, 7, learner.facts.init))
    assert learner.counts()["prefix_hits"] == 0


class TestSelfCheck:
    """A model that drops tangents must not start a run."""

    def test_no_tangent_at_all(self, tiny_condition, monkeypatch):
        whole = network.Network.logits
        monkeypatch.setattr(network.Network, "logits", lambda self, theta, x, mask, way, still: whole(self, theta.detach(), x, mask, way))
        with pytest.raises(ArithmeticError, match=r"tangent is missing[^$]*hint:"):
            TextLearner(tiny_condition(trainable=BITFIT))

    def test_a_part_detached(self, tiny_condition, monkeypatch):
        mean = network.pool
        monkeypatch.setattr(network, "pool", lambda x, mask: mean(x.detach(), mask))
        with pytest.raises(ArithmeticError, match=r"central difference says [^$]*drops tangents"):
            TextLearner(tiny_condition(trainable=BITFIT))

    def test_a_kernel_without_forward_mode(self, tiny_condition, monkeypatch):
        def refuse(*args):
            raise NotImplementedError("Trying to use forward AD with a kernel that does not support it")

        monkeypatch.setattr(network, "jvp", refuse)
        with pytest.raises(ArithmeticError, match=r"no forward-mode derivative[^$]*central_difference"):
            TextLearner(tiny_condition(trainable=BITFIT))
        TextLearner(tiny_condition(trainable=BITFIT, estimator={"type": "central_difference"}))


PRINT_BITS = """
import sys
from flame.config import Condition
from flame.core.tasks import Evaluate, Gradient
from flame.learn.text import TextLearner
learner = TextLearner(Condition.model_validate_json(sys.stdin.read()), prefix_cache=False)
print(learner.facts, learner.run(Gradient("t3", 1, 2, 99, learner.facts.init)), learner.run(Evaluate(1, learner.facts.init)))
"""


def test_minilm_gives_the_same_bits_in_another_process(text_condition):
    """The real model, whatever the hash seed, the threads that the environment offers, and the cache."""
    condition = text_condition(trainable={"part": "bitfit", "last_layers": 2}, tokens=64, eval={"rows": 33})
    other = subprocess.Popen(
        [sys.executable, "-c", PRINT_BITS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONHASHSEED": "42", "OMP_NUM_THREADS": "2"},
    )  # fmt: skip
    said, _ = other.communicate(condition.model_dump_json())
    learner = TextLearner(condition)
    here = learner.facts, learner.run(Gradient("t3", 1, 2, 99, learner.facts.init)), learner.run(Evaluate(1, learner.facts.init))
    assert said == " ".join(map(str, here)) + "\n"
    assert "float32[9988]" in said
