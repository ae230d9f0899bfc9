"""What changed since the version that the trainer holds, bit for bit (`flame.learn.patch`).

A step of a forward gradient moves every coordinate, so little is saved: some per cent of float32, more of bfloat16, where
a little is often nothing (docs/payloads.md has figures). Where it isn't shorter than the weights they are sent instead.
"""

from typing import ClassVar

from flame.core.messages import Payload
from flame.policies.payload.rules import KEPT, Shelf, shorter
from flame.policies.policy import Policy


class Delta(Policy):
    """Send `none`, or `delta` where that version is still kept and the patch is shorter than `full`."""

    keeps: ClassVar[int] = KEPT

    def payload(self, held: int | None, shelf: Shelf) -> Payload:
        """`none`, `delta` or `full`."""
        if held == shelf.version:
            return Payload("none")
        return shelf.full() if held is None else shorter(shelf.delta(held), shelf.full())
