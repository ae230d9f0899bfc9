"""FedBuff's staleness discount (Nguyen et al., AISTATS'22): the older an update, the less it weighs.

    omega = (1 + s)^-1/2

s = 0 weighs 1, s = 3 a half. Neither the loss nor the direction of the update plays a part.
"""

from math import sqrt
from typing import ClassVar, Literal

from flame.policies.policy import Policy
from flame.policies.rate.view import RateView, Weight


class FedBuff(Policy):
    """Weight (1 + s)^-1/2."""

    wants_running: ClassVar[bool] = False
    type: Literal["fedbuff"] = "fedbuff"

    def weigh(self, view: RateView) -> Weight:
        """The discount of the view's staleness."""
        discount = 1 / sqrt(1 + view.staleness)
        return Weight(discount, {"staleness": discount})
