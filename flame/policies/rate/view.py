"""What a rate may look at, and what it answers."""

from dataclasses import dataclass, field
from typing import Protocol

from flame.learn.params import Vector


@dataclass(slots=True)
class RateView:
    """One update at its acceptance.

    staleness: how old it is, in the condition's unit. utility: Oort's U as the trainer reported it.
    delta: the upload (p,). running: (p,) the rate-weighted sum of what this cycle has accepted so far, in canonical
    order; None before the first, and for a rate that doesn't want it.
    """

    staleness: float
    utility: float
    delta: Vector
    running: Vector | None = None


@dataclass(frozen=True, slots=True)
class Weight:
    """The weight of one update. value: at most 1. parts: what it was made of. gated: whether the align gate lowered it."""

    value: float
    parts: dict[str, float] = field(default_factory=dict)
    gated: bool = False


class RateRule(Protocol):
    """One rate."""

    @property
    def wants_running(self) -> bool:
        """Whether `running` is to be summed up at all."""
        ...

    def weigh(self, view: RateView) -> Weight:
        """The weight of the update in `view`."""
        ...
