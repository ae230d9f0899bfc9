"""Uniform choice without replacement (FedAvg, AISTATS'17; FwdLLM chooses once per round).

`every: cycle` draws anew at each selection, in O(want) whatever the number of candidates: a
Fisher-Yates shuffle of which only the first `want` places are ever looked at. `every: round` ranks
the nodes by a number derived from (round, node) and takes the first, so the cohort stays the same
for the whole lap, and who falls out is replaced by the next in rank.
"""

from typing import Literal

from flame.core.rng import derive
from flame.policies.policy import Policy
from flame.policies.select.view import SelectView


class Random(Policy):
    """Choose uniformly among the free nodes."""

    type: Literal["random"] = "random"
    every: Literal["cycle", "round"] = "cycle"

    def choose(self, view: SelectView, want: int, state: None) -> tuple[list[str], None]:
        """At most `want` free nodes, sorted by name."""
        chosen = self._ranked(view, want) if self.every == "round" else uniform(view, want)
        return sorted(chosen), state

    def scores(self, state: None) -> None:
        """Nobody is scored."""

    def _ranked(self, view: SelectView, want: int) -> list[str]:
        lap = view.progress.round
        return sorted(view.free, key=lambda node: derive(view.seed, "select", lap, node))[:want]


def uniform(view: SelectView, want: int) -> list[str]:
    """At most `want` free nodes, in the order in which they were drawn."""
    size, moved, chosen = len(view.free), dict[int, int](), list[str]()
    for place in range(min(want, size)):
        other = place + derive(view.seed, "select", view.ordinal, place) % (size - place)
        chosen.append(view.free[moved.get(other, other)])
        moved[other] = moved.get(place, place)
    return chosen
