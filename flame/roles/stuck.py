"""What a run that can't advance says for itself: each trainer, its state, and why it can't be chosen."""

from typing import TYPE_CHECKING

from flame.core.time import clock_text

if TYPE_CHECKING:
    from flame.roles.aggregator import Aggregator

SHOWN = 20
"""Rows of the table; the rest is counted."""


def stuck_table(aggregator: "Aggregator", shown: int = SHOWN) -> str:
    """One line a trainer; who is missing stands first."""
    cycle = aggregator.cycle
    nodes = sorted(aggregator.condition.nodes, key=lambda node: (_weight(aggregator, node), node))
    head = f"  cycle {cycle.progress.cycle} ({cycle.progress}) has {len(cycle.accepted)} of {cycle.goal} accepts"
    lines = [f"  {node}: {_state(aggregator, node)}" for node in nodes[:shown]]
    more = [f"  ... and {len(nodes) - shown} more"] if len(nodes) > shown else []
    return "\n".join([head, *lines, *more])


def _weight(aggregator: "Aggregator", node: str) -> int:
    member = aggregator.roster.members.get(node)
    return 0 if member is None or member.gone else 1 if member.row is not None else 2


def _state(aggregator: "Aggregator", node: str) -> str:
    member = aggregator.roster.members.get(node)
    if member is None:
        return "has not joined"
    if member.gone:
        return "is gone"
    if member.never:
        return "is away for good: its trace ends so"
    if member.row is None and not member.believed:
        return "is believed away"
    if member.row is None:
        return "is free, and was not chosen"
    if member.row.id in aggregator.roster.taken:
        return f"update {member.row.id} is taken, and waits for the close"
    return f"assign {member.row.id} is open, due {clock_text(member.row.due)}"
