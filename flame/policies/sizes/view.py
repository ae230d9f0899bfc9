"""What a rule for K and C may look at, and what it answers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol


class Sizes(NamedTuple):
    """goal: K. concurrency: C."""

    goal: int
    concurrency: int


@dataclass(slots=True)
class SizesView:
    """Where a cycle opens. start: K and C of the condition. trainers: N.

    pooled: uploads of the bin at the close before; 0 where there was none. committed: whether that close committed.
    """

    start: Sizes
    trainers: int
    pooled: int = 0
    committed: bool = False


class SizesRule(Protocol):
    """One rule for K and C."""

    def sample(self, view: SizesView, state: Any) -> tuple[Sizes, Any]:
        """K and C of the cycle that opens, and the next state; it is None at first."""
        ...

    def possible(self, start: Sizes, trainers: int) -> Sequence[Sizes]:
        """All that can come into force."""
        ...

    def misfit(self, start: Sizes, trainers: int) -> str | None:
        """Why K and C of the condition don't go with it, as `what; remedy`; None if they do."""
        ...
