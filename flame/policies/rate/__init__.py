"""How much one accepted update weighs (at most 1), fixed at its acceptance."""

from typing import Annotated

from flame.policies.policy import BY_NAME
from flame.policies.rate.constant import Constant
from flame.policies.rate.view import RateView

Rate = Annotated[Constant, BY_NAME]

__all__ = ["Constant", "Rate", "RateView"]
