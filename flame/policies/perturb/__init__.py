"""Along which directions a trainer probes, and what it uploads of them."""

from typing import Annotated

from pydantic import Field

from flame.policies.perturb.best_of import BestOf
from flame.policies.perturb.combined import Combined, PerturbRule, rebuilt
from flame.policies.perturb.guided import Guided
from flame.policies.perturb.mean_of import MeanOf
from flame.policies.perturb.single import Single
from flame.policies.perturb.split import Split
from flame.policies.policy import BY_NAME

Perturb = Annotated[BestOf | Guided | MeanOf | Single | Split, Field(discriminator="type"), BY_NAME]

__all__ = ["BestOf", "Combined", "Guided", "MeanOf", "Perturb", "PerturbRule", "Single", "Split", "rebuilt"]
