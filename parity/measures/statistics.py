"""Two-sample statistics that know how little a short series says.

A tolerance alone is no test: KS <= 0.2 fails 98 % of equal pairs at n = 10 and passes large shifts at
n = 1000. Each Measure therefore carries the effect, the tolerance, n, the critical value under equal
laws, and the n that would be needed. The null distribution comes from permuting *blocks*, because
cycles of a run depend on each other and the iid table would reject 8, 34, 76 % of equal AR(1) pairs
at phi 0.5, 0.8, 0.95 (nominal: 5 %):

- aligned series (one value per bin, per evaluation, in both runs) swap real and sim within a block of
  positions: trends that both share cancel;
- others pool the blocks of both runs and deal them out anew.

The length of a block is the AR(1) plug-in of Carlstein (Annals of Statistics, 1986), and no less than makes
`BLOCKS` of a long series. What is permuted are sums over blocks, so a million values cost what a thousand do. Few blocks can't
give a small p, whatever the effect, so a short or strongly dependent series ends in "needs n", never
in a verdict. Draws come from a fixed generator: a report is a function of the telemetry.

**Judging** (`outcome`): FAIL when the effect is over its tolerance and chance doesn't explain it (Holm
over all enforced measures) nor the replicate floor; PASS when it is within and a shift of that size would
have been seen; otherwise neither.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import cbrt, ceil, comb
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from parity.exhibits import Samples
from parity.rung import Measure

ALPHA = 0.01
DRAWS = 9_999
"""Permutations. The smallest p is one in so many, and Holm asks for ALPHA over the number of measures: room for a hundred."""
LOOK = 999
"""Permutations of a first look. A chance over twice ALPHA by these is never rejected, whatever Holm makes of the rest: it stays."""
CELLS = 4_000_000
"""Cells of one slice of the permutation matrix, which bounds memory."""
BLOCKS = 500
"""Blocks of one side at most."""
GRID = 256
"""Values at which the KS distance of a permutation is looked at, at most: quantiles of the pooled values."""

Array = NDArray[np.float64]
Places = NDArray[np.int64]
Deal = Callable[[np.random.Generator, int], NDArray[np.bool_]]
"""(generator, draws) -> which blocks are real's, per draw: (draws, blocks)."""


class Statistic(Protocol):
    """An effect that hangs on the means of some features of the values on either side alone."""

    def sums(self, values: Array, block: Places, grid: int | None) -> Array:
        """The features, summed over each block: (blocks, features). block: of each value. grid: looks at so many places at most."""
        ...

    def effect(self, real: Array, sim: Array) -> Array:
        """From the features' means, (draws, features) a side, the effect of each draw."""
        ...


def ks(real: ArrayLike, sim: ArrayLike, tol: float, *, name: str = "KS", aligned: bool = False, slack: float = 0.0) -> Measure:
    """Two-sample Kolmogorov-Smirnov distance. Raises ValueError for an empty sample.

    slack: values that lie no farther apart count as equal. Without it a clock of a few modelled values, and the same
    with a jitter of a millisecond, are as far apart as can be.
    """
    return _measure(name, Ks(slack), _array(real), _array(sim), tol=tol, aligned=aligned)


def distance(real: ArrayLike, sim: ArrayLike) -> float:
    """The KS distance alone, for a number without a verdict. Raises ValueError for an empty sample."""
    one, two = _array(real), _array(sim)
    return _effect(Ks(0.0), one, two)


def variation(real: ArrayLike, sim: ArrayLike, tol: float, *, name: str = "TVD") -> Measure:
    """Total variation distance between the shares of classes; values are their numbers. Raises ValueError for an empty sample."""
    return _measure(name, Variation(), _array(real), _array(sim), tol=tol, aligned=False)


def mean(real: ArrayLike, sim: ArrayLike, tol: float, *, name: str = "mean", relative: bool = False, aligned: bool = False) -> Measure:
    """Absolute difference of the means, relative to real's mean when asked. Raises ValueError for an empty sample."""
    one, two = _array(real), _array(sim)
    scale = abs(float(one.mean())) if relative else 1.0
    return _measure(name, Mean(scale or 1.0), one, two, tol=tol, aligned=aligned)


def gap(real: ArrayLike, sim: ArrayLike, tol: float, *, name: str = "mean gap") -> Measure:
    """Mean absolute difference of aligned series; chance: what the sign of the differences can explain."""
    difference = _array(real) - _array(sim)
    bias = _measure(name, Mean(1.0), _array(real), _array(sim), tol=tol, aligned=True)
    return replace(bias, effect=float(np.abs(difference).mean()))


def ratio(
    real: tuple[ArrayLike, ArrayLike], sim: tuple[ArrayLike, ArrayLike], tol: float, *, name: str = "ratio"
) -> Measure:  # fmt: skip
    """Absolute difference of two ratios of means, (numerators, denominators) a side, aligned; chance: that of its linear part."""
    (up, down), (other_up, other_down) = (tuple(map(_array, side)) for side in (real, sim))
    both = float((up.mean() + other_up.mean()) / (down.mean() + other_down.mean()))
    parts = [(one - both * two) / two.mean() for one, two in ((up, down), (other_up, other_down))]
    chance = _measure(name, Mean(1.0), *parts, tol=tol, aligned=True)
    effect = abs(float(up.mean() / down.mean() - other_up.mean() / other_down.mean()))
    return replace(chance, effect=effect)


def quantile_share(values: ArrayLike, limit: float, share: float) -> tuple[int, float]:
    """How many of `values` are over `limit`, and the chance of that many or more if `share` of them may be."""
    array = _array(values)
    over = int(np.count_nonzero(array > limit))
    return over, _binomial_tail(over, array.size, share)


def _binomial_tail(least: int, n: int, share: float) -> float:
    """The chance of `least` or more among n."""
    if least == 0:
        return 1.0
    from scipy.special import bdtrc  # half a second of imports, which most reports don't need

    return float(bdtrc(least - 1, n, share))


def holm(chances: Sequence[float], alpha: float = ALPHA) -> list[bool]:
    """Which hypotheses Holm's step-down procedure rejects (Scandinavian Journal of Statistics, 1979)."""
    order = sorted(range(len(chances)), key=lambda index: chances[index])
    rejected = [False] * len(chances)
    for step, index in enumerate(order):
        if chances[index] > alpha / (len(chances) - step):
            break
        rejected[index] = True
    return rejected


def outcome(measure: Measure, rejected: bool, floor: float = 0.0) -> bool | None:
    """True: within tolerance, and a shift would have been seen. False: over it, and neither chance nor the floor explains it.

    None: it can't be told. floor: the largest effect among replicates, 0 where there are none.
    """
    if measure.effect > measure.tol:
        return False if rejected and measure.effect > floor else None
    seen = measure.attainable <= ALPHA and max(measure.critical, floor) <= measure.tol
    return True if seen else None


def block_length(real: Array, sim: Array, aligned: bool) -> int:
    """Values per block: 1.5 (2 rho / (1 - rho^2))^(2/3) n^(1/3), rho the lag-1 correlation of what is permuted.

    rho has Kendall's correction of its bias at small n. The factor was chosen on equal AR(1) pairs:
    at ALPHA 0.01 they are rejected in 0 to 2.5 % for phi 0, 0.5, 0.8, 0.95 and n 30 to 200.
    """
    n = min(real.size, sim.size)
    rho = _lag_one(real - sim) if aligned else max(_lag_one(real), _lag_one(sim))
    rho = min(max(rho + (1 + 3 * rho) / n, 0.0), 0.97)
    return min(max(1, ceil(1.5 * cbrt(n * (2 * rho / (1 - rho * rho)) ** 2))), n)


def _lag_one(series: Array) -> float:
    centred = series - series.mean()
    power, rounding = float(centred @ centred), 1e-24 * float(series @ series)
    return float(centred[1:] @ centred[:-1]) / power if power > rounding else 0.0


def _array(values: ArrayLike) -> Array:
    array = np.asarray(values, dtype=np.float64)
    if array.size == 0:
        raise ValueError("a statistic over nothing is undefined")
    return array


def _measure(name: str, statistic: Statistic, real: Array, sim: Array, *, tol: float, aligned: bool) -> Measure:
    block = max(block_length(real, sim, aligned), ceil(max(real.size, sim.size) / BLOCKS))
    one, two = (np.arange(side.size) // block for side in (real, sim))
    many = int(one[-1]) + 1, int(two[-1]) + 1
    places, values = np.concatenate([one, many[0] + two]), np.concatenate([real, sim])
    deal = _swaps(many[0]) if aligned else _deals(*many)
    effect = _effect(statistic, real, sim)
    null = _null(statistic, values, places, deal, LOOK)
    if _chance(null, effect) <= 2 * ALPHA:
        null = _null(statistic, values, places, deal, DRAWS)
    attainable = max(_attainable(*many, aligned), 1 / (DRAWS + 1))
    critical, p = float(np.quantile(null, 1 - ALPHA, method="higher")), _chance(null, effect)
    n = min(real.size, sim.size)
    needs = _needs(n, block, critical, tol, attainable)
    return Measure(name, effect, tol, n, critical, max(p, attainable), attainable, needs, Samples.thinned(real, sim, aligned))


def _chance(null: Array, effect: float) -> float:
    """How often equal laws give an effect as large."""
    return float((1 + (null >= effect - 1e-12).sum()) / (1 + null.size))


def _effect(statistic: Statistic, real: Array, sim: Array) -> float:
    sides = np.repeat([0, 1], [real.size, sim.size])
    means = statistic.sums(np.concatenate([real, sim]), sides, None) / np.array([[real.size], [sim.size]])
    return float(statistic.effect(means[:1], means[1:])[0])


def _needs(n: int, block: int, critical: float, tol: float, attainable: float) -> int:
    """The n at which a shift of `tol` is seen: critical values shrink as 1/sqrt(n), and eight blocks can reject."""
    blocks = 8 * block if attainable > ALPHA else 0
    return max(n + 1, blocks, ceil(n * (critical / tol) ** 2))


def _null(statistic: Statistic, values: Array, places: Places, deal: Deal, many: int) -> Array:
    """`many` effects under permuted blocks."""
    generator = np.random.Generator(np.random.Philox(key=values.size))
    sums, counts = statistic.sums(values, places, GRID), np.bincount(places).astype(np.float64)
    rows = max(1, CELLS // max(sums.shape))
    draws = [min(rows, many - start) for start in range(0, many, rows)]
    return np.concatenate([_drawn(statistic, sums, counts, deal(generator, count)) for count in draws])


def _drawn(statistic: Statistic, sums: Array, counts: Array, labels: NDArray[np.bool_]) -> Array:
    weights = labels.astype(np.float64)
    real, size = weights @ sums, weights @ counts
    return statistic.effect(real / size[:, None], (sums.sum(axis=0) - real) / (counts.sum() - size)[:, None])


def _attainable(one: int, two: int, aligned: bool) -> float:
    if aligned:
        return float(2.0 ** (1 - one))
    return (2 if one == two else 1) / comb(one + two, one)


def _swaps(blocks: int) -> Deal:
    """Real and sim are exchanged in randomly chosen blocks of positions."""

    def deal(generator: np.random.Generator, draws: int) -> NDArray[np.bool_]:
        kept = generator.integers(0, 2, (draws, blocks), dtype=np.int8).astype(bool)
        return np.concatenate([kept, ~kept], axis=1)

    return deal


def _deals(one: int, two: int) -> Deal:
    """The blocks of both are dealt out anew, as many to real as it had."""

    def deal(generator: np.random.Generator, draws: int) -> NDArray[np.bool_]:
        labels = np.zeros((draws, one + two), bool)
        labels[:, :one] = True
        return generator.permuted(labels, axis=1)

    return deal


@dataclass(frozen=True, slots=True)
class Ks:
    """The KS distance. Features: whether a value is at most x, and at most x + slack, for each x that is looked at."""

    slack: float

    def sums(self, values: Array, block: Places, grid: int | None) -> Array:
        """Counts."""
        at = np.unique(values)
        if grid is not None and at.size > grid:
            at = np.unique(np.quantile(values, np.linspace(0, 1, grid), method="lower"))
        beyond = at + self.slack if self.slack else at
        return np.concatenate([_at_most(at, values, block), _at_most(beyond, values, block)], axis=1)

    def effect(self, real: Array, sim: Array) -> Array:
        """The largest lead of either side."""
        half = real.shape[1] // 2
        apart = np.maximum(real[:, :half] - sim[:, half:], sim[:, :half] - real[:, half:]).max(axis=1)
        return np.asarray(np.maximum(apart, 0.0))


@dataclass(frozen=True, slots=True)
class Variation:
    """Half the sum of the differences of shares. Features: whether a value is of the class."""

    def sums(self, values: Array, block: Places, grid: int | None) -> Array:
        """Counts, by class."""
        classes, which = np.unique(values, return_inverse=True)
        return _counts(which, classes.size, block)

    def effect(self, real: Array, sim: Array) -> Array:
        """Half the sum."""
        return np.asarray(np.abs(real - sim).sum(axis=1) / 2)


@dataclass(frozen=True, slots=True)
class Mean:
    """The difference of the means, in units of `scale`. Feature: the value."""

    scale: float

    def sums(self, values: Array, block: Places, grid: int | None) -> Array:
        """Of the values."""
        return np.bincount(block, weights=values).astype(np.float64)[:, None]

    def effect(self, real: Array, sim: Array) -> Array:
        """The difference."""
        return np.asarray(np.abs(real - sim)[:, 0] / self.scale)


def _at_most(limits: Array, values: Array, block: Places) -> Array:
    """How many values of each block are at most each limit: (blocks, limits)."""
    return np.asarray(np.cumsum(_counts(np.searchsorted(limits, values), limits.size + 1, block)[:, :-1], axis=1))


def _counts(which: Places, many: int, block: Places) -> Array:
    """How many values of each block are of each number below `many`: (blocks, many)."""
    blocks = int(block[-1]) + 1
    return np.bincount(block * many + which, minlength=blocks * many).reshape(blocks, many).astype(np.float64)
