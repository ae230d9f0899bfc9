"""Every update weighs the same."""

from typing import ClassVar, Literal

from flame.policies.policy import Policy
from flame.policies.rate.view import RateView, Weight

ONE = Weight(1.0)


class Constant(Policy):
    """Weight 1, whatever the staleness."""

    wants_running: ClassVar[bool] = False
    type: Literal["constant"] = "constant"

    def weigh(self, view: RateView) -> Weight:
        """1.0"""
        return ONE
