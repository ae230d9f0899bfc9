"""How samples are dealt to clients: evenly, or with a skewed mix of labels.

Both deals take labels in and give positions out, one array per client, in the order in which the
client's bins are cut and never reshuffled. Every draw has a derived seed of its own, so a deal is a
function of (labels, clients, alpha, seed) alone.

`niid_label` (FedNLP; algorithms.md, section 10): each client's mix of labels is a Dirichlet draw of
concentration alpha x class prior, which sums to alpha. Sizes are equal, the last client takes the
rest, and what an exhausted label can't give is filled from the others in proportion to their stock.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from flame.core.rng import derive

Positions = NDArray[np.int64]


def deal(kind: str, labels: NDArray[np.integer], clients: int, alpha: float, seed: int) -> list[Positions]:
    """Positions per client for `uniform` or `niid_label`. Raises ValueError when a client would get none."""
    if clients > len(labels):
        raise ValueError(f"{len(labels)} samples can't be dealt to {clients} clients")
    return uniform(labels, clients, seed) if kind == "uniform" else niid_label(labels, clients, alpha, seed)


def uniform(labels: NDArray[np.integer], clients: int, seed: int) -> list[Positions]:
    """A shuffle cut into `clients` parts of floor(n / clients); the last takes the rest."""
    order = _generator(seed, "uniform").permutation(len(labels)).astype(np.int64)
    size = len(labels) // clients
    cuts = [size * client for client in range(1, clients)]
    return list(np.split(order, cuts))


def niid_label(labels: NDArray[np.integer], clients: int, alpha: float, seed: int) -> list[Positions]:
    """Equal sizes, each with its own Dirichlet(alpha x prior) mix of labels."""
    stock = _shuffled_by_label(labels, seed)
    prior = np.array([len(pile) for pile in stock]) / len(labels)
    size = len(labels) // clients
    parts = []
    for client in range(clients - 1):
        mix = _generator(seed, "mix", client).dirichlet(alpha * prior)
        counts = _counts(mix, size, np.array([len(pile) for pile in stock]))
        parts.append(_take(stock, counts))
    parts.append(_take(stock, np.array([len(pile) for pile in stock])))
    return [part[_generator(seed, "order", client).permutation(len(part))] for client, part in enumerate(parts)]


def largest_share(labels: NDArray[np.integer], parts: Sequence[Positions]) -> float:
    """Median over clients of the share of a client's most frequent label."""
    return float(np.median([np.bincount(labels[part]).max() / len(part) for part in parts]))


def _shuffled_by_label(labels: NDArray[np.integer], seed: int) -> list[Positions]:
    """One shuffled pile of positions per label that occurs."""
    piles = [np.flatnonzero(labels == label).astype(np.int64) for label in np.unique(labels)]
    return [pile[_generator(seed, "pile", index).permutation(len(pile))] for index, pile in enumerate(piles)]


def _counts(mix: NDArray[np.float64], size: int, left: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many of each label a client of `size` takes, at most what is `left`; the shortfall by stock."""
    counts = np.minimum(_rounded(mix, size), left)
    while (short := size - int(counts.sum())) > 0:
        stock = left - counts
        counts = counts + np.minimum(_rounded(stock / stock.sum(), short), stock)
    return counts


def _rounded(shares: NDArray[np.float64], total: int) -> NDArray[np.int64]:
    """Integers near shares x total that add up to `total`: the largest remainders are rounded up, ties to the first."""
    exact = shares * total
    counts = np.floor(exact).astype(np.int64)
    up = np.argsort(counts - exact, kind="stable")[: total - int(counts.sum())]
    counts[up] += 1
    return counts


def _take(stock: list[Positions], counts: NDArray[np.int64]) -> Positions:
    """The first `counts` of each pile, removed from it."""
    taken = [pile[:count] for pile, count in zip(stock, counts, strict=True)]
    stock[:] = [pile[count:] for pile, count in zip(stock, counts, strict=True)]
    return np.concatenate(taken)


def _generator(seed: int, *path: int | str) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(key=derive(seed, "partition", *path)))
