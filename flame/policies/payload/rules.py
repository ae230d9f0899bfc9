"""What the rules of both directions are asked, and what they may look at."""

from dataclasses import dataclass
from typing import Protocol

from flame.core.messages import Payload
from flame.core.tasks import GradientResult
from flame.core.tensor import Tensor
from flame.learn.params import Layout
from flame.policies.payload.wire import WireDtype
from flame.policies.perturb import PerturbRule
from flame.policies.perturb.combined import Key

KEPT = 32
"""Versions back to which a rule that sends differences can reach; who holds an older one is sent full weights."""
HEADER = 64
"""About what a tensor costs beside its bytes: name, dtype and shape in the header of the body."""


class Shelf(Protocol):
    """What can be sent down now: the weights of `version`, and what leads there from an older one."""

    @property
    def version(self) -> int:
        """The model version that trainers shall hold."""
        ...

    def full(self) -> Payload:
        """The weights themselves."""
        ...

    def delta(self, held: int) -> Payload | None:
        """What changed since the version `held`; None where that one isn't kept any more."""
        ...

    def log(self, held: int) -> Payload | None:
        """How the version `held` became this one, commit by commit; None where it isn't known that far back, or costs too much."""
        ...


class DownRule(Protocol):
    """One rule of what goes down. keeps: versions of weights that it wants on the shelf, this one included."""

    @property
    def keeps(self) -> int:
        """1 where this version is all."""
        ...

    def payload(self, held: int | None, shelf: Shelf) -> Payload:
        """What to send. held: the last version sent to this trainer, None before the first."""
        ...


@dataclass(frozen=True, slots=True)
class Terms:
    """What both ends know of an upload before it is made."""

    perturb: PerturbRule
    layout: Layout
    wire: WireDtype


class UpRule(Protocol):
    """One rule of what goes up."""

    def packed(self, result: GradientResult, wire: WireDtype) -> Payload:
        """What a trainer sends of its result."""
        ...

    def most(self, terms: Terms) -> int:
        """Bytes of the longest upload's tensors, known before one is made."""
        ...

    def fault(self, payload: Payload, key: Key, terms: Terms) -> str | None:
        """What is wrong with a payload that should be of this rule; None: nothing. key: of its assign."""
        ...

    def delta(self, payload: Payload, key: Key, terms: Terms) -> Tensor:
        """The upload (p,) in theta's dtype. key: of its assign."""
        ...


def strange(payload: Payload, kind: str, names: set[str]) -> str | None:
    """What is wrong where a payload isn't of this kind, with tensors of these names."""
    if payload.kind == kind and payload.tensors.keys() == names:
        return None
    return f"is of `{payload.kind}` with {sorted(payload.tensors)}, where `{kind}` with {sorted(names)} was asked for"


def nbytes(payload: Payload) -> int:
    """About how long a payload is, the same on every machine."""
    return sum(tensor.nbytes + HEADER for tensor in payload.tensors.values())


def shorter(one: Payload | None, full: Payload) -> Payload:
    """The shorter of the two; `full` where they are equal, or there is no other."""
    return one if one is not None and nbytes(one) < nbytes(full) else full
