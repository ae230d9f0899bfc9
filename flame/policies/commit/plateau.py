"""Commit when more uploads no longer help: V has stopped falling (FluxTune; algorithms.md, section 3).

    (V[-1-N] - V[-1]) / V[-1-N] < eps,   N = patience

The history restarts at each commit, includes the present V and needs N + 1 values and a positive
baseline V[-1-N]. It is meant to stand behind `variance`, which takes what is at or below the threshold
first. Independent uploads give V ~ 1/i at the i-th close, a drop of 3/i over three closes, so
with the defaults it fires from about the twentieth close on, and earlier on the noise in V.
"""

from typing import Annotated, Literal

from pydantic import Field, PositiveInt

from flame.policies.commit.view import BinView
from flame.policies.policy import Policy

History = tuple[float, ...]
"""V at the last closes of this bin, the oldest first; at most patience + 1 of them."""


class Plateau(Policy):
    """Commit, reason `plateau`, when V fell by less than the share `eps` over `patience` closes (a rise is less)."""

    type: Literal["plateau"] = "plateau"
    patience: PositiveInt = 3
    eps: Annotated[float, Field(gt=0, lt=1)] = 0.15

    def reason(self, view: BinView, state: History | None) -> tuple[str | None, History]:
        """`plateau`, or None; and the history with the present V in it. A bin's first close has iteration 0."""
        earlier = state if state is not None and view.iteration > 0 else ()
        history = (*earlier, *(() if view.variance is None else (view.variance,)))[-self.patience - 1 :]
        return ("plateau" if self._flat(history) else None), history

    def _flat(self, history: History) -> bool:
        if len(history) <= self.patience or history[0] <= 0:
            return False
        return (history[0] - history[-1]) / history[0] < self.eps
