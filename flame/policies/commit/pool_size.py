"""Commit at a fixed number of pooled uploads, whatever they say of each other.

One number that means the same for every perturbation and model, where a threshold on V does not
(algorithms.md, section 3). With n = K it is `agg_goal`.
"""

from typing import Literal

from pydantic import PositiveInt

from flame.policies.commit.view import BinView
from flame.policies.policy import Policy


class PoolSize(Policy):
    """Commit, reason `pool_size`, when the bin has `n` uploads or more."""

    type: Literal["pool_size"] = "pool_size"
    n: PositiveInt

    def reason(self, view: BinView, state: None) -> tuple[str | None, None]:
        """`pool_size` when uploads >= n."""
        return ("pool_size" if view.uploads >= self.n else None), state
