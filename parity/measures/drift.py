"""Whether two courses part slowly: the slope of the log ratio of aligned positive series.

A constant factor between the two is an offset and no drift. Chance is what the slope does when the
blocks of the series change places, because neighbours depend on each other: a t of independent
residuals would find drift in every pair of correlated runs. How long a block is follows from what is
left beside the slope, or the slope itself would pass for correlation.
"""

from math import cbrt, ceil, factorial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from parity.exhibits import Samples
from parity.measures.statistics import ALPHA, CELLS, DRAWS, block_length
from parity.rung import Measure

PER = 100
"""A slope is told per so many units of progress."""

LEAST = 10
"""Units of progress below which a slope says nothing."""

Array = NDArray[np.float64]


def log_ratio(real: ArrayLike, sim: ArrayLike) -> Array:
    """log(real / sim), place by place."""
    return np.log(np.asarray(real, np.float64)) - np.log(np.asarray(sim, np.float64))


def slope(series: Array) -> float:
    """The least-squares slope of a series per `PER` places; 0 for less than two."""
    return float(_slopes(series[None, :])[0]) if series.size > 1 else 0.0


def drift(real: ArrayLike, sim: ArrayLike, tol: float, *, name: str = "drift") -> Measure:
    """The absolute slope of the log ratio, against its block permutations. Raises ValueError for an empty series."""
    ratio = log_ratio(real, sim)
    n = ratio.size
    if n == 0:
        raise ValueError("a slope over nothing is undefined")
    beside = ratio - slope(ratio) / PER * np.arange(n)
    block = block_length(beside, np.zeros(n), aligned=True)
    effect, null = abs(slope(ratio)), np.abs(_permuted(ratio, block)) if n > 1 else np.zeros(1)
    critical = float(np.quantile(null, 1 - ALPHA, method="higher"))
    blocks = ceil(n / block)
    attainable = 1.0 if n < LEAST else max(2 / factorial(min(blocks, 20)), 1 / (DRAWS + 1))
    p = float((1 + (null >= effect - 1e-12).sum()) / (1 + null.size))
    needs = max(n + 1, LEAST, 6 * block if attainable > ALPHA else 0, ceil(n * cbrt(critical / tol) ** 2))
    samples = Samples(np.asarray(real, np.float64), np.asarray(sim, np.float64), aligned=True)
    return Measure(name, effect, tol, n, critical, max(p, attainable), attainable, needs, samples)


def _slopes(rows: Array) -> Array:
    """The slope of each row."""
    places = np.arange(rows.shape[1]) - (rows.shape[1] - 1) / 2
    return np.asarray(PER * (rows @ places) / (places @ places))


def _permuted(series: Array, block: int) -> Array:
    """The slopes of DRAWS orders of a series, in which whole blocks have changed places; some of them at a time, as memory allows."""
    generator = np.random.Generator(np.random.Philox(key=series.size))
    rows = max(1, CELLS // series.size)
    draws = [min(rows, DRAWS - start) for start in range(0, DRAWS, rows)]
    return np.concatenate([_slopes(series[_orders(generator, series.size, block, count)]) for count in draws])


def _orders(generator: np.random.Generator, n: int, block: int, draws: int) -> NDArray[np.intp]:
    """So many orders of n places, a row each."""
    starts = np.arange(0, n, block)
    drawn = generator.permuted(np.broadcast_to(starts, (draws, starts.size)), axis=1)
    places = (drawn[:, :, None] + np.arange(block)).reshape(draws, -1)
    return places[places < n].reshape(draws, n)
