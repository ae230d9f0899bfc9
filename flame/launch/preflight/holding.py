"""What the machines of a run hold, in bytes, beside the process that they are in: an estimate from K, C, N and p.

    the aggregator   theta and u of as many versions as the payload rule reaches back to; the server step's state;
                     the uploads of a bin, as many as its commit rules let it have, and those of the slots;
                     a row of the roster a trainer, and its trace
    the trainers     the weights that each was sent last, of a version of its own at worst, whichever process hosts it
    on their way     a slot's weights and upload, encoded and decoded once each

A row and an instant of a trace were measured (`tracemalloc`, CPython 3.11); the rest is vectors of p numbers.
"""

from itertools import islice
from typing import NamedTuple

from flame.config.availability import traces
from flame.config.condition import Condition
from flame.config.errors import ConfigError
from flame.policies.commit import Cap, PoolSize
from flame.policies.payload import DOWN

ROW, TRAINER, INSTANT = 640, 256, 56
"""Bytes of a trainer at the aggregator, of its own machine, and of an instant of its trace."""
SAMPLED = 8
"""Traces that are made to see how long they are: they differ by some per cent."""
CYCLES = 60
"""Of a bin without a cap: FwdLLM's. Where no rule ends it, no number is right."""
WIDE = 8 * 4
"""Bytes of the server step, a coordinate: the aggregate and its sum, two moments, in float64."""
COPIES = 4
"""Of what is on its way in a slot: weights and upload, at both ends."""


class Holding(NamedTuple):
    """Bytes: of a run whose bins take one cycle, and at most."""

    least: int
    most: int


NOTHING = Holding(0, 0)


def held(condition: Condition, parameters: int, vector: int) -> Holding:
    """What a run of `condition` holds. vector: bytes of theta (p,)."""
    sizes, weights, trainers = condition.possible_sizes, _weights(condition) * vector, condition.trainers
    slots = min(max(each.concurrency for each in sizes), trainers)
    rows = trainers * (ROW + TRAINER + _trace(condition)) + WIDE * parameters + slots * (1 + COPIES) * vector
    least = rows + (1 + slots) * weights + min(each.goal for each in sizes) * vector
    most = rows + (DOWN[condition.payload.down].keeps + trainers) * weights + most_uploads(condition) * vector
    return Holding(least, max(least, most))


def most_uploads(condition: Condition) -> int:
    """Uploads in the pool of a bin, at most."""
    goal = max(sizes.goal for sizes in condition.possible_sizes)
    bounds = [bound for rule in condition.commit if (bound := _most(rule, goal)) is not None]
    return min(bounds, default=CYCLES * goal)


def _most(rule: object, goal: int) -> int | None:
    if isinstance(rule, Cap):
        return rule.max * goal
    if isinstance(rule, PoolSize):
        return rule.n + goal - 1
    return goal if getattr(rule, "type", None) == "agg_goal" else None


def _weights(condition: Condition) -> int:
    """Vectors of one version: theta, and u where a perturbation wants it."""
    return 2 if condition.perturb.wants_direction(1, 1) else 1


def _trace(condition: Condition) -> int:
    """Bytes of a trainer's trace, on average; nothing where nobody is ever away, or the file can't be read."""
    if condition.availability.trace == "syn_0":
        return 0
    try:
        some = list(islice(traces(condition).values(), SAMPLED))
    except ConfigError:
        return 0
    return INSTANT * sum(len(trace.instants) for trace in some) // len(some)
