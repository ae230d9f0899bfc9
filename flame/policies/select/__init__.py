"""Who gets the next assignment. Selectors see free nodes only: one with an open row is not among them."""

from typing import Annotated

from pydantic import Field

from flame.policies.policy import BY_NAME
from flame.policies.select.all import All
from flame.policies.select.async_oort import AsyncOort
from flame.policies.select.fedbuff import FedBuff
from flame.policies.select.oort import Oort
from flame.policies.select.random import Random
from flame.policies.select.view import SelectRule, SelectView, Standing

Select = Annotated[All | Random | FedBuff | Oort | AsyncOort, Field(discriminator="type"), BY_NAME]

__all__ = ["All", "AsyncOort", "FedBuff", "Oort", "Random", "Select", "SelectRule", "SelectView", "Standing"]
