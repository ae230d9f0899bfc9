"""Who gets the next assignment. Selectors see free nodes only: one with an open row is not among them."""

from typing import Annotated

from pydantic import Field

from flame.policies.policy import BY_NAME
from flame.policies.select.all import All
from flame.policies.select.random import Random
from flame.policies.select.view import SelectView

Select = Annotated[All | Random, Field(discriminator="type"), BY_NAME]

__all__ = ["All", "Random", "Select", "SelectView"]
