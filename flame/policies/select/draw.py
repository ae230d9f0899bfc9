"""Weighted sampling without replacement, by exponential races (Efraimidis and Spirakis, IPL 2006).

Each name gets u, uniform in (0, 1) and derived from a path that ends in the name, and the `size` names with
the largest ln(u) / weight win. That is successive sampling (draw by weight, take it out, draw again), what
`numpy.random.choice(..., replace=False, p=...)` does; but who wins hangs on names and weights alone, not on
the order in which they come.
"""

from collections.abc import Mapping
from heapq import nlargest
from math import log

from flame.core.rng import derive

LEAST = 1e-12
"""The weight of what has none: it is drawn when nobody else is left."""


def drawn(weights: Mapping[str, float], size: int, seed: int, *path: int | str) -> list[str]:
    """At most `size` names, by weight, in the order in which they were drawn."""

    def race(name: str) -> tuple[float, str]:
        uniform = (derive(seed, *path, name) + 1) / (2**64 + 1)
        return log(uniform) / max(weights[name], LEAST), name

    return nlargest(size, weights, key=race)
