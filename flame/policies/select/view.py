"""What a selector may look at: a read-only view of the one ledger."""

from collections.abc import Sequence
from dataclasses import dataclass

from flame.core.progress import Progress


@dataclass(slots=True)
class SelectView:
    """free: selectable nodes, indexable in O(1), in ledger order (a function of the released sequence).

    seed: the condition's. ordinal: how many selections were made before.
    """

    free: Sequence[str]
    progress: Progress
    seed: int
    ordinal: int
