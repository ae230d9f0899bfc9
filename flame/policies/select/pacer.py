"""Oort's pacer: how slow a node may be before it is marked down (OSDI'21, section 4.3, and its code).

Nodes over the preferred duration T, a percentile of all modelled durations, are marked down. At every
`step`-th cycle from the second on the pacer compares the utility that exploitation brought in the last two
windows of `step` cycles, W1 and W2:

    |W2 - W1| <= 0.1 W1    the slow ones are needed       percentile + delta, 100 at most
    |W2 - W1| >= 5 W1      utility comes fast anyway      percentile - delta, delta at least

A window's utility is the sum over its cycles of sum(U) / (n + 1e-4), over the n exploited updates that were
accepted in the cycle. The published code counts what came back before the next selection; here an update
counts in the cycle of its acceptance, which is the same in a synchronous loop, and loses nothing in an
asynchronous one. Cycles are numbered from 1.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from flame.policies.select.view import Standing


class Pacing(NamedTuple):
    """The pacer's numbers. step: cycles of a window. delta: percent."""

    step: int
    delta: float


class Pacer(NamedTuple):
    """percentile: of the durations, T. cycle: the last one it was asked in.

    out: exploited nodes whose update wasn't seen yet, with their count at the choice. gains: (cycle of
    acceptance, U) of those that were, as far back as two windows reach.
    """

    percentile: float
    cycle: int = 0
    out: tuple[tuple[str, int], ...] = ()
    gains: tuple[tuple[int, float], ...] = ()


def paced(pacer: Pacer, pacing: Pacing, nodes: Mapping[str, Standing], cycle: int) -> Pacer:
    """The pacer in `cycle`: what came back is noted, and each boundary of windows since the last time is judged."""
    back = [nodes[node] for node, count in pacer.out if nodes[node].count > count]
    out = tuple((node, count) for node, count in pacer.out if nodes[node].count == count)
    gains = (*pacer.gains, *((node.last + 1, node.utility) for node in back))
    percentile = pacer.percentile
    for boundary in range((pacer.cycle // pacing.step + 1) * pacing.step, cycle + 1, pacing.step):
        percentile = _judged(percentile, pacing, gains, boundary)
    oldest = cycle - 2 * pacing.step
    return Pacer(percentile, cycle, out, tuple(gain for gain in gains if gain[0] >= oldest))


def exploiting(pacer: Pacer, nodes: Mapping[str, Standing], chosen: Iterable[str], exploited: Iterable[str]) -> Pacer:
    """The pacer after a choice. Who is chosen was free: of an earlier assign of his nothing will come any more."""
    again = frozenset(chosen)
    out = [entry for entry in pacer.out if entry[0] not in again]
    return pacer._replace(out=(*out, *((node, nodes[node].count) for node in exploited)))


def _judged(percentile: float, pacing: Pacing, gains: Iterable[tuple[int, float]], boundary: int) -> float:
    step, delta = pacing
    if boundary < 2 * step:
        return percentile
    before, now = (_window(gains, boundary - (2 - half) * step, step) for half in (0, 1))
    if abs(now - before) <= 0.1 * before:
        return min(100.0, percentile + delta)
    if abs(now - before) >= 5 * before:
        return max(delta, percentile - delta)
    return percentile


def _window(gains: Iterable[tuple[int, float]], start: int, step: int) -> float:
    """Over `step` cycles from `start` on, the sum of the means."""
    by_cycle: dict[int, list[float]] = defaultdict(list)
    for cycle, utility in gains:
        if start <= cycle < start + step:
            by_cycle[cycle].append(utility)
    return sum(sum(utilities) / (len(utilities) + 1e-4) for utilities in by_cycle.values())
