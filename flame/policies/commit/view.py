"""What a commit rule may look at, and how rules are composed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

KEEP = "keep"
"""The reason of a close that doesn't commit: the bin goes on."""


@dataclass(slots=True)
class BinView:
    """The bin at a close. iteration: closes before this one. uploads: n in the pool. variance: V, None for n < 2.

    mean_square: mean over the uploads of ||u||^2 / m; None for n < 1, and where no rule wants it.
    """

    iteration: int
    uploads: int
    variance: float | None
    mean_square: float | None = None

    @property
    def n_eff(self) -> float | None:
        """2 mean_square / V: how many independent uploads the pool is worth; None where undefined."""
        return 2 * self.mean_square / self.variance if self.mean_square is not None and self.variance else None


class CommitRule(Protocol):
    """One rule: the reason to commit, or None."""

    def reason(self, view: BinView, state: Any) -> tuple[str | None, Any]:
        """The reason to commit (None: this rule has none) and the rule's next state."""
        ...


def first_match(rules: Sequence[CommitRule], view: BinView, states: Sequence[Any]) -> tuple[str, list[Any]]:
    """The reason of the first rule that commits, else KEEP. Every rule sees every close, and returns its next state."""
    answers = [rule.reason(view, state) for rule, state in zip(rules, states, strict=True)]
    return next((reason for reason, _ in answers if reason), KEEP), [state for _, state in answers]
