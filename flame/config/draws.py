"""Laws of durations, drawn without a generator: the inverse distribution function at a derived number.

A draw has a path, as everything random here has: the same path is the same number on every machine,
whatever was drawn before it. Paths start at 0 and not at the run's seed, because devices belong to the
condition: replicates differ in everything but their devices.

A `Mixture` of lognormals is drawn by one number u in (0, 1): pieces are laid side by side on that
interval by their shares, the piece that u falls into is the one, and u within it is its quantile. `covering`
is the law of the interval that covers a fixed instant, in which long ones are met more often: a lognormal
of median m and sd s turns into one of median m exp(s^2), its share is multiplied by its mean.
"""

from dataclasses import dataclass
from math import exp, log
from statistics import NormalDist
from typing import NamedTuple

from flame.core.rng import derive

EDGE = 2.0**-53
"""The least distance of a quantile from 0 and 1."""


def uniform(*path: int | str) -> float:
    """A number in (0, 1) that is a function of `path` alone."""
    return min((derive(0, *path) + 0.5) / 2**64, 1 - EDGE)


def lognormal(mean: float, sd: float, quantile: float) -> float:
    """The value of a lognormal at `quantile`. mean, sd: of the logarithm."""
    return exp(mean + sd * NormalDist().inv_cdf(quantile))


class Piece(NamedTuple):
    """One lognormal of a mixture. median: in seconds. sd: of the logarithm."""

    share: float
    median: float
    sd: float

    @property
    def mean(self) -> float:
        """Its mean, in seconds."""
        return self.median * exp(self.sd**2 / 2)


@dataclass(frozen=True, slots=True)
class Mixture:
    """Lognormals whose shares add up to 1."""

    pieces: tuple[Piece, ...]

    @property
    def mean(self) -> float:
        """Its mean, in seconds."""
        return sum(piece.share * piece.mean for piece in self.pieces)

    def draw(self, *path: int | str) -> float:
        """Seconds, a function of `path` alone."""
        left = uniform(*path)
        for piece in self.pieces[:-1]:
            if left < piece.share:
                return _within(piece, left)
            left -= piece.share
        return _within(self.pieces[-1], left)

    def covering(self) -> "Mixture":
        """The law of an interval, given that it covers a fixed instant."""
        return Mixture(
            tuple(Piece(piece.share * piece.mean / self.mean, piece.median * exp(piece.sd**2), piece.sd) for piece in self.pieces)
        )


def _within(piece: Piece, left: float) -> float:
    return lognormal(log(piece.median), piece.sd, min(max(left / piece.share, EDGE), 1 - EDGE))
