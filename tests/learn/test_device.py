"""Devices: who may compute where, and that nothing moves but through one seam."""

import ast
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

import flame
from flame.config import Condition, ConfigError, World
from flame.learn.device import Device, chosen
from flame.learn.learner import build

SEAM = "device.py"


def cards(count: int) -> Callable[[], int]:
    """As many GPUs."""
    return lambda: count


def never() -> int:
    """Nobody may look."""
    raise AssertionError("looked for a GPU")


@pytest.mark.parametrize(
    ("asked", "order", "count", "name"),
    [
        ("cpu", "stamp", never, "cpu"), ("cpu", "arrival", never, "cpu"),
        ("auto", "stamp", never, "cpu"), ("auto", "arrival", cards(0), "cpu"), ("auto", "arrival", cards(2), "cuda:0"),
        ("cuda", "arrival", cards(1), "cuda:0"), ("cuda:1", "arrival", cards(2), "cuda:1"),
    ],
)  # fmt: skip
def test_a_gpu_is_for_the_fidelity_tier(asked: str, order: str, count: Callable[[], int], name: str) -> None:
    assert chosen(asked, order, count) == name


@pytest.mark.parametrize(
    ("asked", "order", "count", "says"),
    [
        ("cuda:0", "stamp", never, "`device: cuda:0` can't carry out `commit_order: stamp`"),
        ("cuda", "arrival", cards(0), "`device: cuda` isn't there: there is none here"),
        ("cuda:1", "arrival", cards(1), "there is only cuda:0\n"),
        ("cuda:5", "arrival", cards(3), "there is only cuda:0 to cuda:2\n"),
    ],
)
def test_what_can_not_be_had_is_refused_with_a_remedy(asked: str, order: str, count: Callable[[], int], says: str) -> None:
    with pytest.raises(ConfigError, match=says) as error:
        chosen(asked, order, count)
    assert "`device: " in error.value.hint


@pytest.mark.parametrize("wrong", ["gpu", "cuda:", "cuda:x", "CPU", "cuda:-1", ""])
def test_a_device_that_there_is_no_word_for(wrong: str) -> None:
    with pytest.raises(ValidationError):
        World(device=wrong)


def test_a_task_without_torch_says_so() -> None:
    with pytest.raises(ConfigError, match="`device: cuda:0` says nothing to `task: toy`"):
        build(Condition.model_validate({"stop": {"cycles": 1}}), device="cuda:0")
    assert build(Condition.model_validate({"stop": {"cycles": 1}}), device="auto").facts.device == "cpu"


def test_there_and_back() -> None:
    torch = pytest.importorskip("torch")
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    there = Device().put(values)
    assert there.dtype == torch.float32
    assert Device().put(values, torch.int64).dtype == torch.int64
    assert Device().get(there.requires_grad_()).tobytes() == values.tobytes()
    values[0, 0] = 9
    assert there[0, 0] == 0, "memory of its own"


@pytest.mark.text
@pytest.mark.parametrize(
    "trainable",
    [{"part": "head"}, {"part": "bitfit", "last_layers": 1}, {"part": "adapter", "last_layers": 1}, {"part": "lora"}, {"part": "all"}],
)
def test_everything_is_there_that_meets_there(
    tiny: Callable[[str], Path], trainable: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On torch's device without values: whatever was left behind on the CPU would refuse to meet it."""
    pytest.importorskip("transformers")
    monkeypatch.setattr("transformers.masking_utils._ignore_bidirectional_mask_sdpa", lambda *mask: False)  # it would read values
    from flame.config.condition import Trainable
    from flame.learn.network import Batch, Network
    from flame.learn.pretrained import Pretrained

    @dataclass(frozen=True)
    class Nowhere(Device):
        name: str = "meta"

        def get(self, tensor: Any) -> Any:
            return np.zeros(tuple(tensor.shape), np.float32)

    nowhere = Nowhere()
    network = Network(Pretrained(tiny("bert")), Trainable.model_validate(trainable), 3, device=nowhere)
    ids, mask, labels = np.ones((4, 8), np.int32), np.ones((4, 8), np.int32), np.zeros(4, np.int64)
    below = network.below(ids, mask)
    batch = Batch(network, *(nowhere.put(values) for values in (below, mask, labels)))
    theta, probes = network.init, np.ones((2, network.init.size))
    assert batch.losses(theta).shape == (4,)
    assert [each.shape for each in batch.jvp(theta, probes)] == [(4,), (2, 4)]
    assert [each.shape for each in batch.jvp(theta, probes[:1])] == [(4,), (1, 4)]
    assert [each.shape for each in batch.gradient(theta)] == [(4,), theta.shape]


def crossings(source: str) -> list[str]:
    """Calls by which values cross between NumPy and torch."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            called: Any = ast.unparse(node.func)
            if called in ("torch.tensor", "torch.from_numpy", "torch.as_tensor") or node.func.attr in ("numpy", "cpu", "cuda"):
                found.append(f"line {node.lineno}: {called}")
    return found


def test_values_cross_in_one_place() -> None:
    folder = Path(flame.__file__).parent / "learn"
    found = {path.name: lines for path in sorted(folder.rglob("*.py")) if (lines := crossings(path.read_text()))}
    assert list(found) == [SEAM], found
    assert len(found[SEAM]) == 3
