"""Weights once per trainer and model version, afterwards VAR_BAD (FluxTune; algorithms.md, section 6)."""

from typing import ClassVar

from flame.core.messages import Payload
from flame.policies.payload.rules import Shelf
from flame.policies.policy import Policy


class OncePerVersion(Policy):
    """Send `none` when the trainer was sent this version before."""

    keeps: ClassVar[int] = 1

    def payload(self, held: int | None, shelf: Shelf) -> Payload:
        """`none` or `full`."""
        return Payload("none") if held == shelf.version else shelf.full()
