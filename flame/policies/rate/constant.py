"""Every update weighs the same."""

from typing import Literal

from flame.policies.policy import Policy
from flame.policies.rate.view import RateView


class Constant(Policy):
    """Weight 1, whatever the staleness."""

    type: Literal["constant"] = "constant"

    def weigh(self, view: RateView) -> float:
        """1.0"""
        return 1.0
