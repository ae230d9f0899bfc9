"""Along which directions a trainer probes, and what it uploads of them."""

from typing import Annotated

from pydantic import Field

from flame.policies.perturb.guided import Guided
from flame.policies.perturb.single import Single
from flame.policies.policy import BY_NAME

Perturb = Annotated[Guided | Single, Field(discriminator="type"), BY_NAME]

__all__ = ["Guided", "Perturb", "Single"]
