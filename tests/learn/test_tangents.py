"""The forward-mode pass through frozen maps: the plain network's losses bit for bit, its slopes but for rounding, for less work."""

from collections import Counter

import numpy as np
import pytest

pytestmark = pytest.mark.text
torch = pytest.importorskip("torch")

from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from flame.learn.network import Batch, Network  # noqa: E402
from flame.learn.tangents import FrozenLayerNorm, FrozenLinear, forward_mode  # noqa: E402
from flame.learn.text import TextLearner  # noqa: E402

PARTS = [{"part": "head"}] + [{"part": part, "last_layers": 2} for part in ("bitfit", "lora", "adapter", "all")]


class Counting(TorchDispatchMode):
    """Counts the kernels that are called."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: Counter[str] = Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.calls[func.__name__.partition(".")[0]] += 1
        return func(*args, **(kwargs or {}))


@pytest.fixture
def made(text_condition, tiny):
    def make(trainable: dict, kind: str = "bert") -> tuple[Batch, np.ndarray]:
        learner = TextLearner(text_condition(model=str(tiny(kind)), trainable=trainable))
        theta = (learner.init + 0.05 * np.random.default_rng(5).standard_normal(learner.init.size)).astype(np.float32)
        return learner.objective(learner.bin("t1", 0)), theta

    return make


def plainly(batch: Batch, theta: np.ndarray, probes: np.ndarray, monkeypatch) -> tuple[np.ndarray, np.ndarray]:
    """What it gives with the library's own formulas."""
    with monkeypatch.context() as patch:
        patch.setitem(vars(batch.network), "_forward", batch.network._top)
        return batch.jvp(theta, probes)


@pytest.mark.parametrize("trainable", PARTS)
@pytest.mark.parametrize("kind", ["bert", "distilbert"])
def test_losses_have_the_same_bits_and_slopes_agree(made, trainable, kind, monkeypatch):
    batch, theta = made(trainable, kind)
    probes = np.random.default_rng(3).standard_normal((3, theta.size))
    for some in (probes[:1], probes):
        expected, got = plainly(batch, theta, some, monkeypatch), batch.jvp(theta, some)
        assert np.array_equal(got[0], expected[0])
        assert got[1] == pytest.approx(expected[1], rel=1e-3, abs=1e-5 * float(np.abs(expected[1]).max()))
        assert np.array_equal(batch.losses(theta), got[0])


def test_it_leaves_products_with_zero_out(made, monkeypatch):
    batch, theta = made({"part": "bitfit", "last_layers": 2})
    probe = np.random.default_rng(3).standard_normal((1, theta.size))
    with Counting() as plain:
        plainly(batch, theta, probe, monkeypatch)
    with Counting() as short:
        batch.jvp(theta, probe)
    products = [sum(each.calls[name] for name in ("mm", "addmm")) for each in (plain, short)]
    assert products[1] < 0.75 * products[0]


def test_a_gradient_is_put_together_once_and_not_from_slices_as_long_as_theta(made):
    batch, theta = made({"part": "all", "last_layers": 2})
    with Counting() as counted:
        batch.gradient(theta)
    assert counted.calls["slice_backward"] == 0
    assert counted.calls["mm"] > 0


def test_what_trains_keeps_the_librarys_modules():
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.LayerNorm(3), torch.nn.Linear(3, 2, bias=False))
    copied = forward_mode(model, frozenset({"0.weight", "1.bias"}))
    assert [type(each) for each in copied] == [torch.nn.Linear, FrozenLayerNorm, FrozenLinear]
    assert [name for name, _ in copied.named_parameters()] == [name for name, _ in model.named_parameters()]
    assert all(mine is own for mine, own in zip(copied.parameters(), model.parameters(), strict=True))
    x = torch.randn(4, 3)
    assert torch.equal(copied(x), model(x))


def test_a_layer_norms_tangent_is_the_librarys():
    torch.manual_seed(2)
    plain = torch.nn.LayerNorm(16, dtype=torch.float64).requires_grad_(False)
    plain.weight.copy_(torch.randn(16))
    frozen = FrozenLayerNorm(plain)
    x, v = torch.randn(2, 5, 16, dtype=torch.float64), torch.randn(2, 5, 16, dtype=torch.float64)
    with torch.no_grad():
        expected, got = torch.func.jvp(plain, (x,), (v,)), torch.func.jvp(frozen, (x,), (v,))
    assert torch.equal(got[0], expected[0])
    assert torch.allclose(got[1], expected[1], rtol=1e-12, atol=1e-12)


def test_the_network_keeps_one_set_of_weights(tiny):
    from flame.config.condition import Trainable
    from flame.learn.pretrained import Pretrained

    network = Network(Pretrained(tiny("bert")), Trainable(part="bitfit", last_layers=1), 4)
    held = {id(parameter) for parameter in network._top.parameters()}
    assert {id(parameter) for parameter in network._forward.parameters()} == held
