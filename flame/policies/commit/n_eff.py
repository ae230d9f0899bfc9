"""A gate without a scale: commit when the pool is worth `n` independent uploads (algorithms.md, section 3).

    n_eff = 2 mean(||u||^2 / m) / V

For n independent uploads, nearly all of whose length is noise, E[V] = 2 mean(||u||^2 / m) / n, so
n_eff is about n, whatever the perturbation and the length of the gradient; uploads that repeat each other
count once. It counts independent uploads, not signal. It needs the vectors.
"""

from typing import Literal

from pydantic import PositiveFloat

from flame.policies.commit.view import BinView
from flame.policies.policy import Policy


class NEff(Policy):
    """Commit, reason `n_eff`, when n_eff >= `n`. V = 0 with uploads that aren't zero passes: no noise is left to measure."""

    type: Literal["n_eff"] = "n_eff"
    n: PositiveFloat

    def reason(self, view: BinView, state: None) -> tuple[str | None, None]:
        """`n_eff`, or None while V or the mean square is undefined, or too few."""
        if view.variance is None or not view.mean_square:
            return None, state
        return ("n_eff" if 2 * view.mean_square >= self.n * view.variance else None), state
