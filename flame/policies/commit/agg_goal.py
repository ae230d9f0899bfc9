"""Each close commits (FedAvg, AISTATS'17; FedBuff, AISTATS'22)."""

from typing import Literal

from flame.policies.commit.view import BinView
from flame.policies.policy import Policy


class AggGoal(Policy):
    """Commit, reason `goal`, as soon as K updates are in."""

    type: Literal["agg_goal"] = "agg_goal"

    def reason(self, view: BinView, state: None) -> tuple[str | None, None]:
        """Always `goal`."""
        return "goal", state
