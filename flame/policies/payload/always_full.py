"""Full weights with every assignment."""

from flame.policies.policy import Policy


class AlwaysFull(Policy):
    """Send `full`, whatever the trainer holds."""

    def kind(self, held: int | None, version: int) -> str:
        """`full`"""
        return "full"
