"""The text classifier as a function of one flat theta: encoder, masked mean pooling, linear head.

What lies below the first trainable parameter is frozen, so the network is cut there:

    below(ids, mask) -> x         frozen; the same for ever, so `flame.learn.prefix` keeps it
    losses(theta, x, mask, y)     the rest, a function of the trainables alone

    stage      x                                    when
    `pooled`   features (b, hidden)                 head
    `layer k`  activations (b, tokens, hidden)      bitfit of the last layers: k is the first that trains
    `tokens`   ids (b, tokens): nothing is kept     bitfit of all layers, or an architecture that can't be cut

Trainable parts: `head`, and `bitfit` (BitFit, ACL'22): the head and every bias of the last n encoder layers,
those of their LayerNorms included; n = 0 stands for every bias of the encoder, its embeddings' LayerNorm too.
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, jvp
from torch.nn.functional import cross_entropy

from flame.config.condition import Trainable
from flame.config.errors import ConfigError
from flame.learn.params import Layout, Vector
from flame.learn.pretrained import Pretrained

STACKS = {"bert": "encoder", "roberta": "encoder", "xlm-roberta": "encoder", "distilbert": "transformer"}
"""Where an architecture has its list `layer`; these can be cut between two of them."""


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
    """A pretrained encoder and a head of `classes`, cut below the first trainable parameter."""

    def __init__(self, pretrained: Pretrained, trainable: Trainable, classes: int) -> None:
        """Raises ConfigError when `trainable` doesn't fit the model."""
        self._pretrained = pretrained
        self._whole: nn.Module | None = None
        head = nn.Linear(pretrained.hidden, classes).requires_grad_(False)
        nn.init.zeros_(head.weight)
        nn.init.zeros_(head.bias)
        self.cut = first_layer(pretrained, trainable)
        self.stage = "pooled" if trainable.part == "head" else "tokens" if self.cut is None else f"layer {self.cut}"
        top = None if trainable.part == "head" else self._layers(self.cut, None)
        self._top = Classifier(top, head, from_ids=self.cut is None).eval()
        chosen = trainable_names(self._top, pretrained, trainable)
        held = dict(self._top.named_parameters())
        self.layout = Layout(chosen, tuple(tuple(held[name].shape) for name in chosen))
        self.init: NDArray[np.float32] = torch.cat([held[name].reshape(-1) for name in chosen]).numpy().copy()

    def below(self, ids: NDArray[np.int32], mask: NDArray[np.int32]) -> NDArray[np.generic]:
        """x of a batch of b rows; ids, mask (b, tokens). Bits depend on b."""
        if self.stage == "tokens":
            return ids
        with torch.no_grad():
            lower = self._whole_encoder() if self.stage == "pooled" else self._layers(0, self.cut)
            x = lower(input_ids=torch.tensor(ids, dtype=torch.int64), attention_mask=torch.tensor(mask)).last_hidden_state
            return (pool(x, torch.tensor(mask)) if self.stage == "pooled" else x).numpy()

    def logits(self, theta: Tensor, x: Tensor, mask: Tensor) -> Tensor:
        """Logits (b, classes), differentiable in theta (p,)."""
        values = {name: theta[part].view(shape) for name, part, shape in self.layout.slices()}
        return functional_call(self._top, values, (x, mask))  # type: ignore[no-any-return]

    def _whole_encoder(self) -> nn.Module:
        if self._whole is None:
            self._whole = self._pretrained.encoder()
        return self._whole

    def _layers(self, start: int | None, stop: int | None) -> nn.Module:
        """The encoder with layers start to stop only, sharing the weights; from layer 1 on it takes activations for embeddings."""
        encoder = self._whole_encoder()
        if start is None or (start, stop) == (0, None):
            return encoder
        stack = STACKS[self._pretrained.config["model_type"]]
        layers = getattr(encoder, stack).layer
        kept = _replaced(layers, {name: layer for name, layer in layers.named_children() if start <= int(name) < (stop or len(layers))})
        parts = {stack: _replaced(getattr(encoder, stack), {"layer": kept})}
        return _replaced(encoder, parts | ({"embeddings": GivenActivations()} if start else {}))


class GivenActivations(nn.Module):
    """Stands for the embeddings above a cut: hands on the activations that came as `inputs_embeds`."""

    def forward(self, *given: Tensor | None, **named: Tensor | int | None) -> Tensor:
        """The one floating tensor among the arguments."""
        return next(x for x in (*given, *named.values()) if isinstance(x, Tensor) and x.is_floating_point())


def _replaced(module: nn.Module, children: dict[str, nn.Module]) -> nn.Module:
    """A shallow copy, sharing every parameter, with other children: all of them for a list, else those named."""
    new = copy(module)
    new._modules = dict(children if isinstance(module, nn.ModuleList) else {**module._modules, **children})
    return new


def first_layer(pretrained: Pretrained, trainable: Trainable) -> int | None:
    """The first encoder layer that trains, where the network is cut; None where it isn't cut between layers."""
    kind, count = pretrained.config.get("model_type"), trainable.last_layers
    if trainable.part == "head":
        if count:
            raise ConfigError(f"`trainable.last_layers` is {count}, but `part: head` trains no layer", "drop it, or use `part: bitfit`")
        return None
    layers = layers_of(pretrained)
    if count > layers or (count and kind not in STACKS):
        known = f"the model has {layers}" if kind in STACKS else f"layers of a `{kind}` can't be told apart here"
        raise ConfigError(f"`trainable.last_layers` is {count}, but {known}", f"give at most {layers}, or 0 for every bias")
    return layers - count if 0 < count < layers else None


def trainable_names(top: nn.Module, pretrained: Pretrained, trainable: Trainable) -> tuple[str, ...]:
    """Names of the trainable parameters, in the order in which theta holds them: biases from below, then the head."""
    names = [name for name, _ in top.named_parameters()]
    head = tuple(name for name in names if name.startswith("head."))
    if trainable.part == "head":
        return head
    biases = [name for name in names if name.startswith("encoder.") and name.endswith("bias")]
    if trainable.last_layers:
        inside = f"encoder.{STACKS[pretrained.config['model_type']]}.layer."
        first = layers_of(pretrained) - trainable.last_layers
        biases = [name for name in biases if name.startswith(inside) and int(name.removeprefix(inside).split(".")[0]) >= first]
    return (*biases, *head)


def layers_of(pretrained: Pretrained) -> int:
    """Number of encoder layers."""
    return int(pretrained.config.get("num_hidden_layers") or pretrained.config["n_layers"])


@dataclass(frozen=True, slots=True)
class Batch:
    """An `Objective`: cross-entropy of the network on x, mask (b, ...) and labels y (b,)."""

    network: Network
    x: Tensor
    mask: Tensor
    y: Tensor

    def losses(self, theta: Vector) -> NDArray[np.float32]:
        """(b,) at theta."""
        with torch.no_grad():
            return self._losses(torch.tensor(theta)).numpy()

    def jvp(self, theta: Vector, probes: NDArray[np.float64]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Losses (b,) at theta and slopes (P, b), one pass with tangents per probe. Raises ArithmeticError where one is missing."""
        at, slopes = torch.tensor(theta), []
        with torch.no_grad():
            for v in probes:
                losses, slope = self._slope(at, torch.tensor(v, dtype=at.dtype))
                slopes.append(slope.numpy())
        return losses.numpy(), np.stack(slopes)

    def gradient(self, theta: Vector) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Losses (b,) at theta and the gradient (p,) of their mean."""

        def mean_and_losses(at: Tensor) -> tuple[Tensor, Tensor]:
            losses = self._losses(at)
            return losses.mean(), losses

        gradient, (_, losses) = grad_and_value(mean_and_losses, has_aux=True)(torch.tensor(theta))
        return losses.detach().numpy(), gradient.numpy()

    def _slope(self, at: Tensor, along: Tensor) -> Sequence[Tensor]:
        try:
            return jvp(self._losses, (at,), (along,))
        except NotImplementedError as error:
            raise ArithmeticError(
                f"the model has no forward-mode derivative: {error}\nhint: load it with attn_implementation `eager`, "
                "or use `estimator: central_difference`"
            ) from error

    def _losses(self, theta: Tensor) -> Tensor:
        return cross_entropy(self.network.logits(theta, self.x, self.mask), self.y, reduction="none")
