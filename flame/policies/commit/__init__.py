"""Whether a closed cycle commits. Rules are composed first-match, in the order of the configuration.

The usual order is variance, plateau, cap, pool_size, n_eff, agg_goal: it decides which reason is given.
"""

from typing import Annotated

from pydantic import Field

from flame.policies.commit.agg_goal import AggGoal
from flame.policies.commit.cap import Cap
from flame.policies.commit.n_eff import NEff
from flame.policies.commit.plateau import Plateau
from flame.policies.commit.pool_size import PoolSize
from flame.policies.commit.variance import Variance
from flame.policies.commit.view import KEEP, BinView, CommitRule, first_match
from flame.policies.policy import BY_NAME

Commit = Annotated[AggGoal | Cap | NEff | Plateau | PoolSize | Variance, Field(discriminator="type"), BY_NAME]

__all__ = ["KEEP", "AggGoal", "BinView", "Cap", "Commit", "CommitRule", "NEff", "Plateau", "PoolSize", "Variance", "first_match"]
