"""Modelled devices of a condition: how long one unit of work takes on each trainer.

A registry belongs to the condition and not to the seed, so that replicates differ in everything but
their devices. A lognormal delay is the inverse distribution function at a derived uniform number:
no generator, the same on every machine.
"""

from math import exp
from statistics import NormalDist

from flame.config.condition import Condition, Lognormal
from flame.core.profile import Profile
from flame.core.rng import derive
from flame.core.time import seconds


def profiles(condition: Condition) -> dict[str, Profile]:
    """The profile of each trainer, by node, in the order of their names."""
    delays, nodes = condition.delays, condition.nodes
    if delays.values is not None:
        drawn = [delays.values[number % len(delays.values)] for number in range(len(nodes))]
    else:
        drawn = [_draw(delays.lognormal or Lognormal(), node) for node in nodes]
    return {node: Profile(node, seconds(delay / delays.factor)) for node, delay in zip(nodes, drawn, strict=True)}


def _draw(law: Lognormal, node: str) -> float:
    uniform = (derive(0, "delay", node) + 0.5) / 2**64
    value = exp(law.mean + law.sd * NormalDist().inv_cdf(uniform))
    return min(max(value, law.low), law.high)
