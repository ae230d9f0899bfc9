"""Stretches of stamps in which trainers could be used, as the condition has them: traces, joins and leaves.

A stretch is [begin, end) in ns. What lies outside the run, [0, end), isn't looked at.
"""

from collections.abc import Iterable, Iterator, Mapping

from flame.config.availability import traces
from flame.config.condition import Condition
from flame.core.time import seconds
from flame.core.trace import Trace

Stretch = tuple[int, int]


def available(condition: Condition, end: int) -> dict[str, list[Stretch]]:
    """When each trainer could train, in [0, end). Raises ConfigError where its file of traces isn't here."""
    held = traces(condition)
    return {node: list(clipped(_of(held[node], end), *_there(condition, node, end))) for node in condition.nodes}


def _there(condition: Condition, node: str, end: int) -> Stretch:
    joins, leaves = condition.population.joins, condition.population.leaves
    return seconds(joins.get(node, 0.0)), min(end, seconds(leaves[node])) if node in leaves else end


def _of(trace: Trace, end: int) -> Iterator[Stretch]:
    begin = trace.next_available(0)
    while begin is not None and begin < end:
        stop = trace.next_change(begin)
        yield begin, end if stop is None else stop
        begin = None if stop is None else trace.next_available(stop)


def clipped(stretches: Iterable[Stretch], begin: int, end: int) -> Iterator[Stretch]:
    """What of them lies in [begin, end)."""
    for one, other in stretches:
        if max(one, begin) < min(other, end):
            yield max(one, begin), min(other, end)


def merged(stretches: Iterable[Stretch]) -> list[Stretch]:
    """The same instants, as stretches in order that don't touch."""
    done: list[Stretch] = []
    for begin, end in sorted(stretches):
        if done and begin <= done[-1][1]:
            done[-1] = done[-1][0], max(end, done[-1][1])
        else:
            done.append((begin, end))
    return done


def length(stretches: Iterable[Stretch]) -> int:
    """How long they are together, each instant counted once."""
    return sum(end - begin for begin, end in merged(stretches))


def common(one: Iterable[Stretch], other: Iterable[Stretch]) -> int:
    """How long both hold."""
    left, right = merged(one), merged(other)
    return length(left) + length(right) - length([*left, *right])


def each(held: Mapping[str, Iterable[Stretch]]) -> Iterator[tuple[str, int, int]]:
    """(node, begin, end), node by node."""
    yield from ((node, begin, end) for node, stretches in held.items() for begin, end in stretches)
