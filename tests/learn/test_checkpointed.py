"""Checkpointed backprop: the plain gradient's bits, with fewer activations kept."""

import numpy as np
import pytest

from flame.config import ConfigError
from flame.core.tasks import Gradient
from flame.learn.params import tensor

pytestmark = pytest.mark.text
torch = pytest.importorskip("torch")

from flame.learn.text import TextLearner  # noqa: E402

RECOMPUTING = {"type": "backprop", "checkpointed": True}


@pytest.mark.parametrize("kind", ["bert", "roberta", "distilbert"])
@pytest.mark.parametrize("trainable", [{"part": "all"}, {"part": "lora", "last_layers": 2}, {"part": "adapter", "last_layers": 2}])
def test_it_gives_the_bits_of_backprop(text_condition, tiny, kind, trainable):
    plain = TextLearner(text_condition(model=str(tiny(kind)), trainable=trainable, estimator={"type": "backprop"}))
    theta = tensor((plain.init + 0.05 * np.random.default_rng(5).standard_normal(plain.init.size)).astype(np.float32))
    again = TextLearner(text_condition(model=str(tiny(kind)), trainable=trainable, estimator=RECOMPUTING))
    task = Gradient("t1", 0, 0, 7, theta)
    assert again.run(task) == plain.run(task)


def test_it_keeps_fewer_activations(text_condition, tiny):
    def kept(estimator: dict) -> int:
        learner, sizes = TextLearner(text_condition(model=str(tiny("bert")), trainable={"part": "all"}, estimator=estimator)), []
        batch = learner.objective(learner.bin("t1", 0))
        at = torch.tensor(learner.init, requires_grad=True)
        with torch.autograd.graph.saved_tensors_hooks(lambda x: sizes.append(x.numel()) or x, lambda x: x):
            batch.network.logits(at, batch.x, batch.mask, "recomputing" if batch.recompute else "either")
        return sum(sizes)

    assert kept(RECOMPUTING) < 0.5 * kept({"type": "backprop"})


@pytest.mark.parametrize(
    ("kind", "part", "why"), [("bert", "head", "a head has no layers"), ("albert", "all", "layers of a `albert` can't")]
)
def test_where_there_is_no_layer_it_is_refused(text_condition, tiny, kind, part, why):
    with pytest.raises(ConfigError, match=f"`estimator.checkpointed` can't be done here: {why}"):
        TextLearner(text_condition(model=str(tiny(kind)), trainable={"part": part}, estimator=RECOMPUTING))
