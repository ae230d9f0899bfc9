"""Full weights with every assignment."""

from typing import ClassVar

from flame.core.messages import Payload
from flame.policies.payload.rules import Shelf
from flame.policies.policy import Policy


class AlwaysFull(Policy):
    """Send `full`, whatever the trainer holds."""

    keeps: ClassVar[int] = 1

    def payload(self, held: int | None, shelf: Shelf) -> Payload:
        """`full`"""
        return shelf.full()
