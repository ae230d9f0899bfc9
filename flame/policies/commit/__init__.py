"""Whether a closed cycle commits. Rules are composed first-match, in the order of the configuration."""

from typing import Annotated

from pydantic import Field

from flame.policies.commit.agg_goal import AggGoal
from flame.policies.commit.cap import Cap
from flame.policies.commit.variance import Variance
from flame.policies.commit.view import KEEP, BinView, first_match
from flame.policies.policy import BY_NAME

Commit = Annotated[AggGoal | Cap | Variance, Field(discriminator="type"), BY_NAME]

__all__ = ["KEEP", "AggGoal", "BinView", "Cap", "Commit", "Variance", "first_match"]
