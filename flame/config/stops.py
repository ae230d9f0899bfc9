"""What ends a run: bounds on counts and budgets, a target, and a guard against standing still."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, PositiveFloat, PositiveInt, model_validator

from flame.config.frozen import Frozen


class Target(Frozen):
    """Converged: the last `window` evaluations are at or over `accuracy`."""

    accuracy: Annotated[float, Field(gt=0, le=1)]
    window: PositiveInt = 3


class Stall(Frozen):
    """Stalled: for `window_s` of stamp time no evaluation was better than the running best by what counts as progress.

    on: what is looked at. min_delta: accuracy, absolute. loss_min_rel_delta: loss, as a share of the best one.
    """

    window_s: PositiveFloat = 7200.0
    on: Literal["acc", "loss", "either"] = "either"
    min_delta: PositiveFloat = 0.01
    loss_min_rel_delta: PositiveFloat = 0.01


class StopRules(Frozen):
    """The first that holds ends the run. runtime_s is a budget of stamps; wall_s a failsafe of wall time.

    A run with a target has a stall guard, unless `stall: null` says that it hasn't.
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
        unguarded = isinstance(given, dict) and given.get("target") is not None and "stall" not in given
        return given | {"stall": {}} if unguarded else given

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        if not (self.cycles or self.commits or self.accepts or self.runtime_s):
            raise ValueError("nothing ends the run; give one of `cycles`, `commits`, `accepts`, `runtime_s`")
        return self
