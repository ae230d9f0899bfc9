"""What a rule for K and C may look at, and what it answers."""

from dataclasses import dataclass
from typing import NamedTuple


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
