"""An upper bound on the cycles of one bin."""

from typing import Literal

from pydantic import PositiveInt

from flame.policies.commit.view import BinView
from flame.policies.policy import Policy


class Cap(Policy):
    """Commit, reason `cap`, at the `max`-th close of a bin."""

    type: Literal["cap"] = "cap"
    max: PositiveInt

    def reason(self, view: BinView, state: None) -> tuple[str | None, None]:
        """`cap` when iteration + 1 >= max."""
        return ("cap" if view.iteration + 1 >= self.max else None), state
