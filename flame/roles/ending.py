"""When a run has come to its end: rules over counts and evaluations, without a state of their own."""

from collections.abc import Sequence

from flame.config.condition import StopRules, Target
from flame.core.progress import Progress


def bound_reached(rules: StopRules, at: Progress, accepts: int) -> str | None:
    """The first count that is at its bound, such as `12 cycles`; None while none is."""
    counts = (("cycles", at.cycle, rules.cycles), ("commits", at.model_version, rules.commits), ("accepts", accepts, rules.accepts))
    return next((f"{count} {name}" for name, count, bound in counts if bound is not None and count >= bound), None)


def converged(target: Target, recent: Sequence[float]) -> str | None:
    """Why the run has converged: the last `window` accuracies are at or over the target; None while they aren't."""
    last = recent[-target.window :]
    if len(last) < target.window or min(last) < target.accuracy:
        return None
    return f"{target.window} evaluations in a row at or over {target.accuracy}"
