"""Random directions that are a function of (seed, index) alone.

NumPy's Philox is counter-based: probe i of a seed has its own counter block, so probes can be drawn
one by one, in chunks or in another process with the same bits (torch's generators can't do that).
"""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

Distribution = Literal["gaussian", "rademacher", "sphere"]


def direction(seed: int, index: int, size: int, distribution: Distribution) -> NDArray[np.float64]:
    """Probe `index` of `seed`: (size,) with E[v v^T] = I.

    gaussian: standard normal. rademacher: signs. sphere: uniform with norm sqrt(size).
    """
    generator = np.random.Generator(np.random.Philox(key=seed, counter=[0, 0, 0, index]))
    if distribution == "rademacher":
        return generator.integers(0, 2, size).astype(np.float64) * 2 - 1
    values = generator.standard_normal(size)
    return values * np.sqrt(size / np.add.reduce(values * values)) if distribution == "sphere" else values


def directions(seed: int, count: int, size: int, distribution: Distribution) -> NDArray[np.float64]:
    """Probes 0 to count - 1 of `seed`, (count, size)."""
    return np.stack([direction(seed, index, size, distribution) for index in range(count)])
