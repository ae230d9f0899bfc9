"""How much one accepted update weighs (at most 1), fixed at its acceptance."""

from typing import Annotated

from pydantic import Field

from flame.policies.policy import BY_NAME
from flame.policies.rate.constant import Constant
from flame.policies.rate.fedbuff import FedBuff
from flame.policies.rate.felix import Felix
from flame.policies.rate.grad_aware import GradAware
from flame.policies.rate.view import RateRule, RateView, Weight

Rate = Annotated[Constant | FedBuff | Felix | GradAware, Field(discriminator="type"), BY_NAME]

__all__ = ["Constant", "FedBuff", "Felix", "GradAware", "Rate", "RateRule", "RateView", "Weight"]
