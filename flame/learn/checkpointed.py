"""Backprop in less memory: a layer's activations are computed again on the way back instead of being kept.

Sublinear memory cost (Chen et al. 2016): about one more forward pass, and the activations of one layer at a
time. The parameters come from outside (`functional_call`), and are given back by then; so each layer takes
hold of those that it was called with, and is computed again with them. The gradient's bits are the same.
"""

from typing import Any

from torch import Tensor, nn
from torch.func import functional_call
from torch.utils.checkpoint import checkpoint

from flame.config.errors import ConfigError
from flame.learn.parts import STACKS, grafted, replaced


class Checkpointed(nn.Module):
    """Stands for a layer, with the same names for the same parameters, and keeps only its input."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self._modules = layer._modules
        self._layer = (layer,)  # in a tuple, or its parameters would have a second name

    def forward(self, x: Tensor, *rest: Any, **named: Any) -> Tensor:
        """What the layer gives."""
        values: dict[str, Tensor] = dict(self.named_parameters())

        def compute(x: Tensor) -> Tensor:
            return functional_call(self._layer[0], values, (x, *rest), named)  # type: ignore[no-any-return]

        return checkpoint(compute, x, use_reentrant=False)  # type: ignore[no-any-return]


def recomputing(top: nn.Module, kind: str) -> nn.Module:
    """A shallow copy of a classifier of an architecture, with every encoder layer checkpointed. Raises ConfigError if it has none."""
    if top.encoder is None or kind not in STACKS:
        why = f"layers of a `{kind}` can't be told apart" if top.encoder is not None else "a head has no layers"
        raise ConfigError(f"`estimator.checkpointed` can't be done here: {why}", "leave it out")
    return grafted(top, ["encoder", STACKS[kind], "layer"], _each)


def _each(layers: nn.Module) -> nn.Module:
    return replaced(layers, {name: Checkpointed(layer) for name, layer in layers.named_children()}, only=True)
