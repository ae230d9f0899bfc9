"""Everybody who is free, in the order of their names."""

from typing import Literal

from flame.policies.policy import Policy
from flame.policies.select.view import SelectView


class All(Policy):
    """Choose every free node, up to the number wanted."""

    type: Literal["all"] = "all"

    def choose(self, view: SelectView, want: int, state: None) -> tuple[list[str], None]:
        """At most `want` free nodes, by name."""
        return sorted(view.free)[:want], state

    def scores(self, state: None) -> None:
        """Nobody is scored."""
