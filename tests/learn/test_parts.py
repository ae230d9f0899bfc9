"""LoRA and adapters: counted, put in without a change of function, cut where they begin, cached without a change of bits."""

from types import SimpleNamespace

import numpy as np
import pytest

from flame.config import Condition, ConfigError
from flame.config.condition import Estimator, Trainable
from flame.core.rng import derive
from flame.core.tasks import Evaluate, Gradient
from flame.learn.estimators import forward_ad, measure
from flame.learn.params import tensor
from flame.learn.pretrained import Pretrained, locate

pytestmark = pytest.mark.text
torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from torch.func import functional_call  # noqa: E402

from flame.learn.network import Classifier, Network  # noqa: E402
from flame.learn.parts import fitted, trainable_names  # noqa: E402
from flame.learn.text import TextLearner  # noqa: E402

from .test_network import rows, theta_of  # noqa: E402

KINDS, PARTS = ("bert", "roberta", "distilbert"), ("lora", "adapter", "all")


def whole_logits(pretrained: Pretrained, network: Network, trainable: Trainable, theta, ids, mask):
    """What the network computes, without a cut."""
    whole = Classifier(fitted(pretrained.encoder(), pretrained, trainable), torch.nn.Linear(32, 4), from_ids=True).eval()
    values = {name: theta[part].view(shape) for name, part, shape in network.layout.slices()}
    with torch.no_grad():
        return functional_call(whole, values, (torch.tensor(ids, dtype=torch.int64), torch.tensor(mask)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("last_layers", [0, 1, 2])
def test_the_cut_network_gives_the_bits_of_the_whole(tiny, kind, part, last_layers):
    pretrained, trainable, (ids, mask) = Pretrained(tiny(kind)), Trainable(part=part, last_layers=last_layers), rows()
    network = Network(pretrained, trainable, 4)
    stage = "feed-forward" if part == "adapter" and kind != "distilbert" else "layer"
    assert network.stage == (f"{stage} {3 - last_layers}" if last_layers else "tokens")
    theta = theta_of(network)
    with torch.no_grad():
        got = network.logits(theta, torch.tensor(network.below(ids, mask)), torch.tensor(mask))
    assert torch.equal(got, whole_logits(pretrained, network, trainable, theta, ids, mask))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("part", PARTS)
def test_it_starts_at_the_pretrained_function(tiny, kind, part):
    pretrained, (ids, mask) = Pretrained(tiny(kind)), rows()
    network, plain = (Network(pretrained, Trainable(part=each, last_layers=2), 4) for each in (part, "bitfit"))
    logits = []
    for each in (network, plain):
        theta = torch.tensor(each.init)
        theta[-132:] = torch.linspace(-1, 1, 132)  # a head that sees something
        with torch.no_grad():
            logits.append(each.logits(theta, torch.tensor(each.below(ids, mask)), torch.tensor(mask)))
    assert torch.equal(*logits)


def test_the_random_half_is_drawn_from_the_seed(tiny):
    pretrained, trainable = Pretrained(tiny("bert")), Trainable(part="lora", last_layers=1)
    one, again, other = (Network(pretrained, trainable, 4, seed) for seed in (1, 1, 2))
    assert np.array_equal(one.init, again.init)
    assert not np.array_equal(one.init, other.init)
    for name, part, shape in one.layout.slices():
        values = one.init[part]
        assert np.any(values) == ("down.weight" in name)
        if "down.weight" in name:
            assert np.abs(values).max() <= 1 / np.sqrt(shape[1])
            assert np.unique(values).size > 0.99 * values.size


def count(kind: str, config, part: str, classes: int = 4, **rest) -> int:
    """Trainable parameters of an architecture, from its configuration alone."""
    pretrained = SimpleNamespace(config={"model_type": kind, "num_hidden_layers": config.num_hidden_layers})
    trainable = Trainable(part=part, **rest)
    with torch.device("meta"):
        encoder = transformers.AutoModel.from_config(config, **({} if kind == "distilbert" else {"add_pooling_layer": False}))
        hidden = getattr(config, "hidden_size", None) or config.dim
        top = Classifier(fitted(encoder, pretrained, trainable), torch.nn.Linear(hidden, classes), from_ids=True)
    named = dict(top.named_parameters())
    return sum(named[name].numel() for name in trainable_names(top, pretrained, trainable))


class TestCounts:
    """The published ones, and those of the table in `flame.learn.parts`."""

    @pytest.mark.parametrize(("classes", "expected"), [(4, 450_340), (10, 454_954), (2, 448_802)])
    def test_distilbert_adapter_with_reduction_16(self, classes, expected):
        assert count("distilbert", transformers.DistilBertConfig(), "adapter", classes, width=48) == expected

    def test_bert_base_adapter_with_reduction_16(self):
        assert count("bert", transformers.BertConfig(), "adapter", width=48) == 897_604

    def test_minilm(self):
        config = transformers.AutoConfig.from_pretrained(locate("minilm").path)
        assert count("bert", config, "adapter", last_layers=1) == 8_076
        assert count("bert", config, "adapter") == 6 * (2 * 8 * 384 + 8 + 384) + 1_540
        assert count("bert", config, "lora", last_layers=2) == 2 * 4 * 8 * 384 + 1_540
        assert count("bert", config, "lora", last_layers=1, r=2) == 4 * 2 * 384 + 1_540
        assert count("bert", config, "all") == 22_565_376 + 1_540


@pytest.mark.parametrize("kind", ["bert", "distilbert"])
@pytest.mark.parametrize("part", PARTS)
def test_cached_and_uncached_give_the_same_bits_and_the_estimators_agree(text_condition, tiny, kind, part):
    def condition(estimator: str) -> Condition:
        step = {"h": "auto"} if estimator == "central_difference" else {}
        return text_condition(model=str(tiny(kind)), trainable={"part": part, "last_layers": 1}, estimator={"type": estimator, **step})

    slopes = {}
    for estimator in ("forward_ad", "central_difference", "backprop"):
        kept, computed = TextLearner(condition(estimator)), TextLearner(condition(estimator), prefix_cache=False)
        theta = tensor((kept.init + 0.05 * np.random.default_rng(5).standard_normal(kept.init.size)).astype(np.float32))
        for task in (Gradient("t2", 1, 3, derive(1, "probe"), theta), Evaluate(1, theta)):
            first, read, fresh = (learner.run(task) for learner in (kept, kept, computed))
            assert first == read == fresh
        assert kept.counts()["prefix_hits"] > 0
        slopes[estimator] = kept.objective(kept.bin("t1", 0))
    start = kept.init + np.float32(0.02)
    v = np.random.default_rng(1).standard_normal((1, start.size)) / np.sqrt(start.size)
    exact = slopes["forward_ad"].jvp(start, v)[1].mean()
    assert exact == pytest.approx(slopes["backprop"].gradient(start)[1].astype(np.float64) @ v[0], rel=1e-3, abs=1e-6)


def test_minilm_reads_its_adapter_from_the_middle_of_a_layer(text_condition):
    learner = TextLearner(text_condition(trainable={"part": "adapter", "last_layers": 1}))
    assert learner.facts.layout.size == 8_076
    assert learner.objective(learner.bin("t0", 0)).x.shape == (8, 16, 2 * 384)


class TestErrors:
    """What doesn't fit is named, with what to type instead."""

    def test_an_architecture_that_has_no_place_for_it(self, tiny):
        with pytest.raises(ConfigError, match=r"`trainable.part` is `lora`, which has no place in a `albert`\nhint: use `part: bitfit`"):
            Network(Pretrained(tiny("albert")), Trainable(part="lora"), 4)

    @pytest.mark.parametrize(("part", "key", "of"), [("adapter", "r", "lora"), ("bitfit", "alpha", "lora"), ("lora", "width", "adapter")])
    def test_a_key_of_another_part(self, part, key, of):
        with pytest.raises(ValueError, match=f"`{key}` says nothing to `part: {part}`; drop it, or use `part: {of}`"):
            Trainable.model_validate({"part": part, key: 3})


class TestProbesAtOnce:
    """vmap over P probes: the loop's slopes but for rounding, and bits that hang on (P, chunk) alone."""

    @pytest.fixture
    def objective(self, text_condition, tiny):
        def make(part: str):
            last = {} if part == "head" else {"last_layers": 2}
            learner = TextLearner(text_condition(model=str(tiny("bert")), trainable={"part": part, **last}))
            theta = (learner.init + 0.05 * np.random.default_rng(5).standard_normal(learner.init.size)).astype(np.float32)
            return learner.objective(learner.bin("t1", 0)), theta

        return make

    @pytest.mark.parametrize("part", ["head", "bitfit", "lora", "adapter", "all"])
    def test_they_equal_the_loop(self, objective, part):
        batch, theta = objective(part)
        probes = np.random.default_rng(3).standard_normal((7, theta.size))
        loop = forward_ad(batch, theta, probes, 1)
        for chunk in (2, 3, 7, None):
            got = forward_ad(batch, theta, probes, chunk)
            assert got.d == pytest.approx(loop.d, rel=1e-4, abs=1e-4 * np.abs(loop.d).max())
            assert np.array_equal(got.losses, loop.losses)
            assert got.passes == 7
        assert np.array_equal(forward_ad(batch, theta, probes, 9).d, forward_ad(batch, theta, probes, None).d)

    def test_a_loop_takes_each_probe_alone(self, objective):
        batch, theta = objective("bitfit")
        probes = np.random.default_rng(3).standard_normal((3, theta.size))
        alone = [forward_ad(batch, theta, probe[None]).d[0] for probe in probes]
        assert forward_ad(batch, theta, probes, 1).d.tolist() == alone

    def test_the_same_again_whatever_ran_before(self, objective):
        batch, theta = objective("adapter")
        probes = np.random.default_rng(3).standard_normal((5, theta.size))
        first = forward_ad(batch, theta, probes, 4).d
        forward_ad(batch, theta, probes, 2)
        assert np.array_equal(forward_ad(batch, theta, probes, 4).d, first)

    def test_the_condition_says_how_many(self, objective):
        batch, theta = objective("head")
        probes = np.random.default_rng(3).standard_normal((5, theta.size))
        for chunk in (1, 2, None):
            assert np.array_equal(measure(Estimator(chunk=chunk), batch, theta, probes).d, forward_ad(batch, theta, probes, chunk).d)
        with pytest.raises(ValueError, match="`chunk` says nothing to `type: backprop`; drop it, or use `type: forward_ad`"):
            Estimator(type="backprop", chunk=2)
