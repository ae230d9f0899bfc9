"""Two policies that are not of the tree: a selector that lets everybody take turns, and a rate that halves with age."""

from typing import ClassVar

from pydantic import PositiveFloat

from flame.policies.policy import Outside
from flame.policies.rate import RateView, Weight
from flame.policies.select import SelectView


class TakingTurns(Outside):
    """Choose those whose updates were accepted least often; of equals, by name."""

    def choose(self, view: SelectView, want: int, state: None) -> tuple[list[str], None]:
        """At most `want` free nodes, sorted by name. Nothing is remembered: the ledger counts."""
        ranked = sorted(view.free, key=lambda node: (view.nodes[node].count, node))
        return sorted(ranked[:want]), state

    def scores(self, state: None) -> None:
        """Nobody is scored."""


class HalfLife(Outside):
    """Weight 2 ** (-staleness / half_life)."""

    wants_running: ClassVar[bool] = False
    half_life: PositiveFloat = 2.0

    def weigh(self, view: RateView) -> Weight:
        """1 for a fresh update."""
        return Weight(0.5 ** (view.staleness / self.half_life))
