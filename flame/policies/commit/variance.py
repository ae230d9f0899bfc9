"""FwdLLM's variance gate: commit when the pooled uploads agree (USENIX ATC'24; algorithms.md, section 3)."""

from typing import Literal

from pydantic import PositiveFloat

from flame.policies.commit.view import BinView
from flame.policies.policy import Policy


class Variance(Policy):
    """Commit, reason `natural`, when V is at or below `threshold`.

    V depends on the perturbation: a threshold for `single` is ten times one for mean_of(10).
    """

    type: Literal["variance"] = "variance"
    threshold: PositiveFloat

    def reason(self, view: BinView, state: None) -> tuple[str | None, None]:
        """`natural`, or None while V is undefined or above the threshold."""
        passed = view.variance is not None and view.variance <= self.threshold
        return ("natural" if passed else None), state
