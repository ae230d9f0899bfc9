"""Of several probes, the one along which the loss changes most (FluxTune's guided selection; algorithms.md, section 2).

    i = argmax |d_i|,   ghat = d_i v_i

`coin` flips between the two largest, by a number derived from the seed. The mean upload is E[d^2]/||g||^2 g: 3.80 g of
ten probes, 2.99 g with the coin. So it acts as a longer step (6.1 times the length of mean_of(10)'s), and after rescaling
it has 2.63 times (3.35 times) its variance, for the same passes.

A slope that isn't finite is sent, whatever the others are: it ends the run instead of being passed over.
"""

from functools import cache
from math import erf, fsum, sqrt
from typing import Literal

import numpy as np
from pydantic import PositiveInt

from flame.core.rng import derive
from flame.learn.params import Layout, Vector
from flame.policies.heard import unheard
from flame.policies.perturb.combined import Choice, Combined, Wide, one_of
from flame.policies.perturb.noise import Distribution, direction, directions
from flame.policies.policy import Policy

REACH, INTERVALS, DIGITS = 10.0, 2000, 9
"""Of the integral: up to 10 standard deviations, in steps of 0.005, and what is kept of it."""


class BestOf(Policy):
    """The largest |d| of `probes`; the first of equals. coin: one of the two largest, by the flip of a coin."""

    HEARD = unheard("probes", 1, "coin")
    type: Literal["best_of"] = "best_of"
    probes: PositiveInt = 10
    coin: bool = False
    distribution: Distribution = "gaussian"

    @property
    def worth(self) -> float:
        """E[d^2] / ||g||^2 of the one direction that is sent, for normal slopes."""
        return ranked_squares(self.probes, 2 if self.coin else 1)

    def dealt(self, seed: int, turn: int) -> int:
        """The seed as it is: every assign probes everything."""
        return seed

    def wants_direction(self, version: int, data_id: int) -> bool:
        """Never: only `guided` may receive the last committed direction."""
        return False

    def draw(self, seed: int, layout: Layout, towards: Vector | None) -> Wide:
        """The probes, (P, p)."""
        return directions(seed, self.probes, layout.size, self.distribution)

    def combine(self, seed: int, slopes: Wide, probes: Wide) -> Combined:
        """d v of the chosen probe."""
        return one_of(slopes, probes, self._chosen(seed, slopes))

    def choice(self, seed: int, layout: Layout, towards: Vector | None, index: int | None) -> Choice:
        """The probe that was chosen."""
        return (index or 0,)

    def sent(self, seed: int, layout: Layout, choice: Choice) -> Wide:
        """That probe, (1, p)."""
        return direction(seed, choice[0], layout.size, self.distribution)[None]

    def told(self, layout: Layout) -> tuple[int, int]:
        """One scalar, and the number of its probe."""
        return 1, 1

    def drawn(self, layout: Layout) -> int:
        """The probe that was chosen."""
        return layout.size

    def fits(self, seed: int, layout: Layout, scalars: int, choice: Choice) -> bool:
        """One scalar, and one of the probes."""
        return scalars == 1 and len(choice) == 1 and choice[0] < self.probes

    def _chosen(self, seed: int, slopes: Wide) -> int:
        bad = np.flatnonzero(~np.isfinite(slopes))
        if bad.size:
            return int(bad[0])
        ranked = np.argsort(-np.abs(slopes), kind="stable")
        heads = self.coin and len(ranked) > 1 and derive(seed, "coin") % 2 == 1
        return int(ranked[1 if heads else 0])


@cache
def ranked_squares(count: int, heads: int) -> float:
    """E of the `heads` (1 or 2) largest of `count` squared standard normals, their mean; 3.799621 for one of ten.

    By Simpson's rule over x = t^2, E = integral of P(X > t^2) 2t dt. Rounded, so that it is the same number whatever a machine's
    erf has in its last digits: a step depends on it, which others may take again.
    """
    nodes = [REACH * index / INTERVALS for index in range(INTERVALS + 1)]
    below = [erf(t / sqrt(2)) for t in nodes]
    tails = [1 - each**count for each in below]
    if heads == 2:
        seconds = [tail - count * each ** (count - 1) * (1 - each) for tail, each in zip(tails, below, strict=True)]
        tails = [(first + second) / 2 for first, second in zip(tails, seconds, strict=True)]
    weights = [1, *([4, 2] * (INTERVALS // 2 - 1)), 4, 1]
    whole = fsum(weight * 2 * t * tail for weight, t, tail in zip(weights, nodes, tails, strict=True))
    return round(whole * REACH / INTERVALS / 3, DIGITS)
