"""The text classifier as a function of one flat theta: encoder, masked mean pooling, linear head.

What lies below the first trainable parameter is frozen, so the network is cut there:

    below(ids, mask) -> x         frozen; the same for ever, so `flame.learn.prefix` keeps it
    losses(theta, x, mask, y)     the rest, a function of the trainables alone

    stage             x                                   when
    `pooled`          features (b, hidden)                head
    `layer k`         activations (b, tokens, hidden)     the last layers train: k is the first that does
    `feed-forward k`  (b, tokens, 2 hidden)               adapters of the last layers: what the feed-forward block of layer k
                                                          gives, and the residual beside it
    `tokens`          ids (b, tokens): nothing is kept    all layers train, or an architecture that can't be cut

Which parameters train, and what is put into the encoder for it: `flame.learn.parts`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, jvp, vmap
from torch.nn.functional import cross_entropy

from flame.config.condition import Trainable
from flame.learn.checkpointed import recomputing
from flame.learn.device import Device
from flame.learn.params import Layout, Vector
from flame.learn.parts import STACKS, Adapted, first_layer, fitted, grafted, initial, replaced, trainable_names
from flame.learn.pretrained import Pretrained
from flame.learn.tangents import forward_mode

Way = Literal["either", "forward", "recomputing"]

NOTHING: Mapping[str, Tensor] = MappingProxyType({})

INSIDE = ("bert", "roberta", "xlm-roberta")
"""Architectures that can be cut inside a layer, below its adapter."""


def one_thread() -> None:
    """One torch thread for the process: bits depend on how a sum is split (architecture.md, section 8)."""
    torch.set_num_threads(1)
    if torch.get_num_interop_threads() != 1:
        try:
            torch.set_num_interop_threads(1)
        except RuntimeError:  # parallel work has begun; eager inference spawns none, so it only idles
            return


def pool(x: Tensor, mask: Tensor) -> Tensor:
    """Masked mean over tokens: (b, tokens, hidden) to (b, hidden)."""
    weight = mask.unsqueeze(-1).to(x.dtype)
    return (x * weight).sum(1) / weight.sum(1)


class Classifier(nn.Module):
    """The part above the cut. encoder: its layers that train, or None when the features are given."""

    def __init__(self, encoder: nn.Module | None, head: nn.Linear, from_ids: bool) -> None:
        super().__init__()
        self.encoder, self.head, self._from = encoder, head, "input_ids" if from_ids else "inputs_embeds"

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Logits (b, classes)."""
        if self.encoder is not None:
            x = pool(self.encoder(**{self._from: x}, attention_mask=mask).last_hidden_state, mask)
        return self.head(x)  # type: ignore[no-any-return]


class Network:
    """A pretrained encoder and a head of `classes`, cut below the first trainable parameter. seed: of what starts random."""

    def __init__(self, pretrained: Pretrained, trainable: Trainable, classes: int, seed: int = 0, device: Device = Device()) -> None:  # noqa: B008
        """Raises ConfigError when `trainable` doesn't fit the model."""
        self._pretrained, self.device = pretrained, device
        self._whole: nn.Module | None = None
        head = nn.Linear(pretrained.hidden, classes).requires_grad_(False)
        nn.init.zeros_(head.weight)
        nn.init.zeros_(head.bias)
        self.cut = first_layer(pretrained, trainable)
        self._inside = trainable.part == "adapter" and self.cut is not None and pretrained.config["model_type"] in INSIDE
        self.stage = _stage(trainable, self.cut, self._inside)
        top = None if trainable.part == "head" else fitted(self._layers(self.cut, None), pretrained, trainable)
        if top is not None and self._inside:
            top = grafted(top, self._layer(self.cut), AboveFeedForward)
        self._top = device.hold(Classifier(top, head, from_ids=self.cut is None).eval())
        chosen = trainable_names(self._top, pretrained, trainable)
        held = {name: device.get(values) for name, values in self._top.named_parameters()}
        self.layout = Layout(chosen, tuple(tuple(held[name].shape) for name in chosen))
        self.init: NDArray[np.float32] = initial(held, self.layout, seed)

    def below(self, ids: NDArray[np.int32], mask: NDArray[np.int32]) -> NDArray[np.generic]:
        """x of a batch of b rows; ids, mask (b, tokens). Bits depend on b."""
        if self.stage == "tokens":
            return ids
        with torch.no_grad():
            attended = self.device.put(mask)
            x = self._lower()(input_ids=self.device.put(ids, torch.int64), attention_mask=attended).last_hidden_state
            return self.device.get(pool(x, attended) if self.stage == "pooled" else x)

    def logits(self, theta: Tensor, x: Tensor, mask: Tensor, way: Way = "either", still: Mapping[str, Tensor] = NOTHING) -> Tensor:
        """Logits (b, classes), differentiable in theta (p,). way: how they are going to be differentiated; no bit depends on it.

        `forward`: with tangents, cheaply; `recomputing`: backwards, computing the layers' activations again. still: tensors
        that theta leaves out, by name, with their values.
        """
        top = self._forward if way == "forward" else self._recomputing if way == "recomputing" else self._top
        # One cut: the gradient of a slice of theta is as long as theta, and there is one for each tensor.
        moving = [(name, part.stop - part.start, shape) for name, part, shape in self.layout.slices() if name not in still]
        parts = torch.split(theta, [size for _, size, _ in moving])
        values = {name: part.view(shape) for (name, _, shape), part in zip(moving, parts, strict=True)}
        return functional_call(top, values | dict(still), (x, mask))  # type: ignore[no-any-return]

    @cached_property
    def _forward(self) -> nn.Module:
        return forward_mode(self._top, frozenset(self.layout.names))

    @cached_property
    def _recomputing(self) -> nn.Module:
        return recomputing(self._top, self._pretrained.config["model_type"])

    def _whole_encoder(self) -> nn.Module:
        if self._whole is None:
            self._whole = self.device.hold(self._pretrained.encoder())
        return self._whole

    def _lower(self) -> nn.Module:
        if self.stage == "pooled":
            return self._whole_encoder()
        if not self._inside:
            return self._layers(0, self.cut)
        return grafted(self._layers(0, (self.cut or 0) + 1), [*self._layer(self.cut), "output"], BelowAdapter)

    def _layers(self, start: int | None, stop: int | None) -> nn.Module:
        """The encoder with layers start to stop only, sharing the weights; from layer 1 on it takes activations for embeddings."""
        encoder = self._whole_encoder()
        if start is None or (start, stop) == (0, None):
            return encoder
        stack = STACKS[self._pretrained.config["model_type"]]
        layers = getattr(encoder, stack).layer
        kept = {name: layer for name, layer in layers.named_children() if start <= int(name) < (stop or len(layers))}
        cut = grafted(encoder, [stack, "layer"], lambda layers: replaced(layers, kept, only=True))
        return replaced(cut, {"embeddings": GivenActivations()}) if start else cut

    def _layer(self, number: int | None) -> list[str]:
        return [STACKS[self._pretrained.config["model_type"]], "layer", str(number)]


def _stage(trainable: Trainable, cut: int | None, inside: bool) -> str:
    if trainable.part == "head":
        return "pooled"
    return "tokens" if cut is None else f"feed-forward {cut}" if inside else f"layer {cut}"


class GivenActivations(nn.Module):
    """Stands for the embeddings above a cut: hands on the activations that came as `inputs_embeds`."""

    def forward(self, *given: Tensor | None, **named: Tensor | int | None) -> Tensor:
        """The one floating tensor among the arguments."""
        return next(x for x in (*given, *named.values()) if isinstance(x, Tensor) and x.is_floating_point())


class BelowAdapter(nn.Module):
    """Stands for BERT's output block where the network is cut below its adapter: gives its linear map, and the residual beside it."""

    def __init__(self, output: nn.Module) -> None:
        super().__init__()
        self.dense = output.dense

    def forward(self, hidden: Tensor, residual: Tensor) -> Tensor:
        """(b, tokens, inner), (b, tokens, hidden) to (b, tokens, 2 hidden)."""
        return torch.cat([self.dense(hidden), residual], -1)  # type: ignore[operator]


class AboveFeedForward(nn.Module):
    """Stands for BERT's layer above that cut: adapter, residual, LayerNorm."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.output = layer.output

    def forward(self, x: Tensor, *unused: Tensor | None, **unused_too: Tensor | None) -> Tensor:
        """(b, tokens, 2 hidden) to (b, tokens, hidden). The halves are copied: kernels may round differently with a stride."""
        given, residual = (half.contiguous() for half in x.chunk(2, -1))
        adapted: Adapted = self.output.dense  # type: ignore[assignment,union-attr]
        return self.output.LayerNorm(adapted.after(given) + residual)  # type: ignore[operator,union-attr,no-any-return]


@dataclass(frozen=True, slots=True)
class Batch:
    """An `Objective`: cross-entropy of the network on x, mask (b, ...) and labels y (b,). recompute: on the way back."""

    network: Network
    x: Tensor
    mask: Tensor
    y: Tensor
    recompute: bool = False

    def losses(self, theta: Vector) -> NDArray[np.float32]:
        """(b,) at theta."""
        with torch.no_grad():
            return self._here(self._losses(self._there(theta)))

    def jvp(self, theta: Vector, probes: NDArray[np.float64]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Losses (b,) at theta and slopes (P, b), one pass with the tangents of all probes. Raises ArithmeticError where one is missing.

        Tensors that no probe moves get no tangent, and cost none.
        """
        still = {
            name: self._there(theta[part]).view(shape) for name, part, shape in self.network.layout.slices() if not probes[:, part].any()
        }
        moves = np.concatenate([np.full(part.stop - part.start, name not in still) for name, part, _ in self.network.layout.slices()])
        at, along = self._there(theta[moves]), self.network.device.put(probes[:, moves], torch.float32)
        with torch.no_grad():
            if len(along) == 1:
                losses, slope = self._slope(at, along[0], still)
                return self._here(losses), self._here(slope[None])
            losses, slopes = vmap(lambda v: self._slope(at, v, still), out_dims=(None, 0))(along)  # type: ignore[arg-type]
            return self._here(losses), self._here(slopes)

    def gradient(self, theta: Vector) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Losses (b,) at theta and the gradient (p,) of their mean."""
        if self.recompute:
            return self._gradient_recomputing(self._there(theta).requires_grad_())

        def mean_and_losses(at: Tensor) -> tuple[Tensor, Tensor]:
            losses = self._losses(at)
            return losses.mean(), losses

        gradient, (_, losses) = grad_and_value(mean_and_losses, has_aux=True)(self._there(theta))
        return self._here(losses), self._here(gradient)

    def _gradient_recomputing(self, at: Tensor) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """The same without torch.func, which doesn't let activations be dropped."""
        losses = cross_entropy(self.network.logits(at, self.x, self.mask, "recomputing"), self.y, reduction="none")
        (gradient,) = torch.autograd.grad(losses.mean(), at)
        return self._here(losses), self._here(gradient)

    def _there(self, theta: Vector) -> Tensor:
        return self.network.device.put(theta)

    def _here(self, values: Tensor) -> NDArray[np.float32]:
        return self.network.device.get(values)

    def _slope(self, at: Tensor, along: Tensor, still: Mapping[str, Tensor]) -> Sequence[Tensor]:
        try:
            return jvp(lambda theta: self._losses(theta, "forward", still), (at,), (along,))
        except NotImplementedError as error:
            raise ArithmeticError(
                f"the model has no forward-mode derivative: {error}\nhint: load it with attn_implementation `eager`, "
                "or use `estimator: central_difference`"
            ) from error

    def _losses(self, theta: Tensor, way: Way = "either", still: Mapping[str, Tensor] = NOTHING) -> Tensor:
        return cross_entropy(self.network.logits(theta, self.x, self.mask, way, still), self.y, reduction="none")
