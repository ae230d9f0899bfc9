"""Forward mode through frozen maps: tangents without the terms of weights that don't move.

    linear       t = x' W^T + b'            (the library's formula adds x W'^T with W' = 0: a third of its time)
    layer norm   t = (x' - mean(x') - n mean(n x')) w / sd + b',   n the normalised input, means over the last axis

Tangents that aren't there (x' of what lies below the first trainable parameter, b' of a frozen bias) cost nothing.
The primal is the library's own kernel, so the losses have the bits of the plain network. These modules serve the
forward-mode pass alone: they have no backward formula.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from flame.learn.parts import replaced

Tangent = Tensor | None


class _Linear(torch.autograd.Function):
    """linear(x, weight, bias), with a tangent for x and bias."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        return linear(x, weight, bias)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.set_materialize_grads(False)
        ctx.save_for_forward(inputs[1])
        ctx.shape = output.shape

    @staticmethod
    def jvp(ctx: Any, x: Tangent, weight: Tangent, bias: Tangent) -> Tangent:
        (frozen,) = ctx.saved_tensors
        if x is None:
            return None if bias is None else bias.expand(ctx.shape)
        return linear(x, frozen, bias)


class _LayerNorm(torch.autograd.Function):
    """Layer norm over the last axis, with a tangent for x and bias; gives mean and 1/sd too."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> tuple[Tensor, Tensor, Tensor]:
        return torch.native_layer_norm(x, weight.shape, weight, bias, eps)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor, Tensor]) -> None:
        ctx.set_materialize_grads(False)
        ctx.save_for_forward(inputs[0], inputs[1], output[1], output[2])
        ctx.mark_non_differentiable(output[1], output[2])

    @staticmethod
    def jvp(ctx: Any, x: Tangent, weight: Tangent, bias: Tangent, eps: None) -> tuple[Tangent, None, None]:
        at, frozen, mean, inverse = ctx.saved_tensors
        if x is None:
            return None if bias is None else bias.expand(at.shape), None, None
        normal = (at - mean) * inverse
        along = torch.linalg.vecdot(normal, x).unsqueeze(-1) / x.shape[-1]
        out = (x - x.mean(-1, keepdim=True) - normal * along) * (inverse * frozen)
        return out if bias is None else out + bias, None, None


class FrozenLinear(nn.Module):
    """Stands for a linear map whose weight is frozen, with the same parameters."""

    def __init__(self, base: nn.Linear) -> None:
        super().__init__()
        self._parameters = base._parameters

    def forward(self, x: Tensor) -> Tensor:
        """(..., inputs) to (..., outputs)."""
        return _Linear.apply(x, self.weight, self.bias)  # type: ignore[no-any-return,no-untyped-call]


class FrozenLayerNorm(nn.Module):
    """Stands for a layer norm whose weight is frozen, with the same parameters."""

    def __init__(self, base: nn.LayerNorm) -> None:
        super().__init__()
        self._parameters, self._eps = base._parameters, base.eps

    def forward(self, x: Tensor) -> Tensor:
        """(..., hidden) to (..., hidden)."""
        return _LayerNorm.apply(x, self.weight, self.bias, self._eps)[0]  # type: ignore[no-any-return,no-untyped-call]


def forward_mode(module: nn.Module, moving: frozenset[str], name: str = "") -> nn.Module:
    """A shallow copy for the forward-mode pass. moving: names of the parameters that train."""
    children = {key: forward_mode(child, moving, f"{name}{key}.") for key, child in module.named_children()}
    if f"{name}weight" in moving:
        return module
    if type(module) is nn.Linear:
        return FrozenLinear(module)
    if type(module) is nn.LayerNorm and module.elementwise_affine and len(module.normalized_shape) == 1:
        return FrozenLayerNorm(module)
    return replaced(module, children)
