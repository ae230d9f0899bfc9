"""What ends a run: bounds on counts and budgets, a target, and a guard against standing still."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, PositiveFloat, PositiveInt, model_validator

from flame.config.frozen import Frozen
from flame.policies.heard import heard

LONG_S = 172_800.0
"""The ceiling of a run that is governed by its accuracy: 48 h."""


class Target(Frozen):
    """Converged: the last `window` evaluations are at or over `accuracy`."""

    accuracy: Annotated[float, Field(gt=0, le=1)]
    window: PositiveInt = 3


class Stall(Frozen):
    """Stalled: for `window_s` of stamp time no evaluation was better than the running best by what counts as progress.

    on: what is looked at. min_delta: accuracy, absolute. loss_min_rel_delta: loss, as a share of the best one.
    """

    HEARD = heard("on", ["acc", "either"], "min_delta") + heard("on", ["loss", "either"], "loss_min_rel_delta")
    window_s: PositiveFloat = 7200.0
    on: Literal["acc", "loss", "either"] = "either"
    min_delta: PositiveFloat = 0.01
    loss_min_rel_delta: PositiveFloat = 0.01


class StopRules(Frozen):
    """The first that holds ends the run. runtime_s is a budget of stamps; wall_s a failsafe of wall time.

    A run with a target has a stall guard and a ceiling of two days, unless `stall: null` or `wall_s: null` says that it hasn't.
    """

    cycles: PositiveInt | None = None
    commits: PositiveInt | None = None
    accepts: PositiveInt | None = None
    runtime_s: PositiveFloat | None = None
    wall_s: PositiveFloat | None = None
    target: Target | None = None
    stall: Stall | None = None

    @model_validator(mode="before")
    @classmethod
    def _guarded(cls, given: Any) -> Any:
        with_target = isinstance(given, dict) and given.get("target") is not None
        return {"stall": {}, "wall_s": LONG_S} | given if with_target else given

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        if not (self.cycles or self.commits or self.accepts or self.runtime_s):
            raise ValueError("nothing ends the run; give one of `cycles`, `commits`, `accepts`, `runtime_s`")
        return self
