"""FedBuff's selection (Nguyen et al., AISTATS'22): slots that came free are refilled uniformly.

These are the draws of `random` with `every: cycle`, whose `want` is C less the slots held in an asynchronous
loop: the same nodes, under the name of the baseline. What makes FedBuff is its rate and its commit rule.
"""

from typing import Literal

from flame.policies.policy import Policy
from flame.policies.select.random import uniform
from flame.policies.select.view import SelectView


class FedBuff(Policy):
    """Refill uniformly among the free nodes."""

    type: Literal["fedbuff"] = "fedbuff"

    def choose(self, view: SelectView, want: int, state: None) -> tuple[list[str], None]:
        """At most `want` free nodes, by name."""
        return sorted(uniform(view, want)), state

    def scores(self, state: None) -> None:
        """Nobody is scored."""
