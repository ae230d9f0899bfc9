"""Which parameters of a pretrained encoder move, and the small modules that are put into it for that.

    part       what trains, beside the head of classes x (hidden + 1)        parameters of one layer
    `head`     nothing
    `bitfit`   every bias, those of LayerNorms included (BitFit, ACL'22)     BERT: 8 hidden + inner
    `lora`     query and value + alpha/r up(down(x)) (LoRA, ICLR'22)         4 r hidden
    `adapter`  y + up(gelu(down(y))) on what the feed-forward block gives,   2 width hidden + width + hidden
               before its residual and LayerNorm (Houlsby et al., ICML'19)
    `all`      everything

`last_layers: n` says in which encoder layers; 0 stands for all of them, and for `bitfit` and `all` for the
embeddings too. `up` starts at zero, so that the model starts at the pretrained function; `down` starts
uniform within 1/sqrt(its inputs), from a derived seed. The encoder's own parameters are shared, not copied,
and never changed: a module is put in by shallow copies of what leads to it.
"""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from math import sqrt

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import gelu

from flame.config.condition import Trainable
from flame.config.errors import ConfigError
from flame.core.rng import derive
from flame.learn.params import Layout
from flame.learn.pretrained import Pretrained

STACKS = {"bert": "encoder", "roberta": "encoder", "xlm-roberta": "encoder", "distilbert": "transformer"}
"""Where an architecture has its list `layer`; these can be cut between two of them."""
ATTENTION = {"distilbert": ("attention.q_lin", "attention.v_lin")}
FEED_FORWARD = {"distilbert": "ffn.lin2"}
"""Inside a layer: the linear maps that lora and adapter sit on. Others have BERT's names:"""
BERT_ATTENTION, BERT_FEED_FORWARD = ("attention.self.query", "attention.self.value"), "output.dense"
INNER = ("down", "up")


class Lora(nn.Module):
    """A linear map with a low-rank addition: base(x) + scale up(down(x))."""

    def __init__(self, base: nn.Module, rank: int, scale: float) -> None:
        super().__init__()
        inputs, outputs = _shape(base)
        self.base, self._scale = base, scale
        self.down, self.up = nn.Linear(inputs, rank, bias=False), nn.Linear(rank, outputs, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """(..., inputs) to (..., outputs)."""
        return self.base(x) + self._scale * self.up(self.down(x))  # type: ignore[no-any-return]


class Adapted(nn.Module):
    """A linear map followed by a bottleneck beside an identity."""

    def __init__(self, base: nn.Module, width: int) -> None:
        super().__init__()
        hidden = _shape(base)[1]
        self.base = base
        self.down, self.up = nn.Linear(hidden, width), nn.Linear(width, hidden)

    def forward(self, x: Tensor) -> Tensor:
        """(..., inputs) to (..., hidden)."""
        return self.after(self.base(x))

    def after(self, y: Tensor) -> Tensor:
        """The bottleneck on y (..., hidden), what the linear map gave."""
        return y + self.up(gelu(self.down(y)))  # type: ignore[no-any-return]


def fitted(encoder: nn.Module, pretrained: Pretrained, trainable: Trainable) -> nn.Module:
    """The encoder (or its upper layers) with the modules that `trainable` asks for. Raises ConfigError where there is no place."""
    kind = pretrained.config["model_type"]
    if trainable.part not in ("lora", "adapter"):
        return encoder
    if kind not in STACKS:
        raise ConfigError(f"`trainable.part` is `{trainable.part}`, which has no place in a `{kind}`", "use `part: bitfit` or `part: head`")
    places = ATTENTION.get(kind, BERT_ATTENTION) if trainable.part == "lora" else (FEED_FORWARD.get(kind, BERT_FEED_FORWARD),)
    for number, _ in encoder.get_submodule(f"{STACKS[kind]}.layer").named_children():
        if int(number) >= _first(pretrained, trainable):
            for place in places:
                encoder = grafted(encoder, [STACKS[kind], "layer", number, *place.split(".")], lambda base: _wrapped(base, trainable))
    return encoder


def grafted(module: nn.Module, path: Sequence[str], change: Callable[[nn.Module], nn.Module]) -> nn.Module:
    """A shallow copy in which the descendant at `path` is what `change` makes of it."""
    if not path:
        return change(module)
    return replaced(module, {path[0]: grafted(getattr(module, path[0]), path[1:], change)})


def replaced(module: nn.Module, children: dict[str, nn.Module], only: bool = False) -> nn.Module:
    """A shallow copy, sharing every parameter, with these children instead. only: and no others."""
    new = copy(module)
    new._modules = dict(children if only else {**module._modules, **children})
    return new


def first_layer(pretrained: Pretrained, trainable: Trainable) -> int | None:
    """The first encoder layer that trains, where the network is cut; None where it isn't cut between layers."""
    kind, count = pretrained.config.get("model_type"), trainable.last_layers
    if trainable.part == "head":
        return None
    layers = layers_of(pretrained)
    if count > layers or (count and kind not in STACKS):
        known = f"the model has {layers}" if kind in STACKS else f"layers of a `{kind}` can't be told apart here"
        raise ConfigError(f"`trainable.last_layers` is {count}, but {known}", f"give at most {layers}, or 0 for all of them")
    return layers - count if 0 < count < layers else None


def trainable_names(top: nn.Module, pretrained: Pretrained, trainable: Trainable) -> tuple[str, ...]:
    """Names of the trainable parameters, in the order in which theta holds them: from below, then the head."""
    names = [name for name, _ in top.named_parameters()]
    head = tuple(name for name in names if name.startswith("head."))
    if trainable.part == "head":
        return head
    chosen = [name for name in names if name.startswith("encoder.") and _trains(name, trainable.part)]
    if trainable.last_layers:
        inside = f"encoder.{STACKS[pretrained.config['model_type']]}.layer."
        first = _first(pretrained, trainable)
        chosen = [name for name in chosen if name.startswith(inside) and int(name.removeprefix(inside).split(".")[0]) >= first]
    return (*chosen, *head)


def initial(held: Mapping[str, NDArray[np.float32]], layout: Layout, seed: int) -> NDArray[np.float32]:
    """theta (p,) of model version 0: what is held, but for the modules put in: `up` zero, `down` drawn."""
    theta = np.empty(layout.size, np.float32)
    for name, part, shape in layout.slices():
        *_, module, kind = ("", *name.split("."))
        if module not in INNER:
            theta[part] = held[name].ravel()
        elif (module, kind) == ("down", "weight"):
            draw = np.random.Generator(np.random.Philox(key=derive(seed, "init", name)))
            theta[part] = draw.uniform(-1, 1, part.stop - part.start) / sqrt(shape[1])
        else:
            theta[part] = 0
    return theta


def layers_of(pretrained: Pretrained) -> int:
    """Number of encoder layers."""
    return int(pretrained.config.get("num_hidden_layers") or pretrained.config["n_layers"])


def _first(pretrained: Pretrained, trainable: Trainable) -> int:
    return layers_of(pretrained) - trainable.last_layers if trainable.last_layers else 0


def _trains(name: str, part: str) -> bool:
    if part == "bitfit":
        return name.endswith("bias")
    return part == "all" or name.split(".")[-2] in INNER


def _wrapped(base: nn.Module, trainable: Trainable) -> nn.Module:
    new = Lora(base, trainable.r, trainable.alpha / trainable.r) if trainable.part == "lora" else Adapted(base, trainable.width)
    return new.requires_grad_(False).eval()


def _shape(linear: nn.Module) -> tuple[int, int]:
    assert isinstance(linear, nn.Linear)
    return linear.in_features, linear.out_features
