"""How the trainer's version became this one: seeds, scalars and weights of every upload that was committed since.

The trainer takes the same steps again (`flame.policies.payload.log`), with the code of the server, so its weights
are the server's bit for bit. With `up: seeds` no vector travels any more but the first weights.
"""

from typing import ClassVar

from flame.core.messages import Payload
from flame.policies.payload.rules import KEPT, Shelf, shorter
from flame.policies.policy import Policy


class Replay(Policy):
    """Send `none`, or `replay` where the log reaches back that far, is soon followed and is shorter than `full`."""

    keeps: ClassVar[int] = KEPT

    def payload(self, held: int | None, shelf: Shelf) -> Payload:
        """`none`, `replay` or `full`."""
        if held == shelf.version:
            return Payload("none")
        return shelf.full() if held is None else shorter(shelf.log(held), shelf.full())
