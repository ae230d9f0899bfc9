"""What a selector may look at: a read-only view of the one ledger."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from flame.core.progress import Progress


class Standing(Protocol):
    """What is known of one node; the roster's members are such, so a policy that doesn't look costs nothing."""

    @property
    def utility(self) -> float:
        """U of its last accepted update; 0 before there is one."""

    @property
    def last(self) -> int:
        """The cycle that was open when its last update was accepted."""

    @property
    def count(self) -> int:
        """Its accepted updates."""

    @property
    def duration(self) -> int:
        """Modelled duration D of one unit of work, ns."""


@dataclass(slots=True)
class SelectView:
    """free: selectable nodes, indexable in O(1), in ledger order (a function of the released sequence).

    seed: the condition's. ordinal: how many selections were made before. nodes: everybody who ever
    joined, gone ones included. unexplored: how many of the present nodes had no update accepted yet.
    """

    free: Sequence[str]
    progress: Progress
    seed: int
    ordinal: int
    nodes: Mapping[str, Standing] = field(default_factory=dict)
    unexplored: int = 0


class SelectRule(Protocol):
    """One selector."""

    def choose(self, view: SelectView, want: int, state: Any) -> tuple[list[str], Any]:
        """At most `want` free nodes, sorted by name, and the next state; it is None at first."""
        ...

    def scores(self, state: Any) -> Any:
        """What each chosen node's score was made of, for telemetry; None where nobody is scored."""
        ...
