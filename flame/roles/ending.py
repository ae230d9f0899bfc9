"""When a run has come to its end: bounds on counts, and what its evaluations say. Rules without a state of their own."""

from dataclasses import dataclass, replace
from math import inf

from flame.config.stops import Stall, StopRules, Target
from flame.core.progress import Progress
from flame.core.tasks import EvalResult
from flame.core.time import in_seconds, seconds

Ending = tuple[str, str]
"""Verdict and reason."""


@dataclass(frozen=True, slots=True)
class Course:
    """The evaluations so far, as the rules that end a run need them; stamps in ns.

    recent: the last accuracies, as many as a target looks at. accuracy, loss: the running bests, which move by what
    counts as progress; since: when one that the stall guard looks at last did.
    """

    recent: tuple[float, ...] = ()
    accuracy: float = -inf
    loss: float = inf
    since: int = 0

    def after(self, stamp: int, result: EvalResult, rules: StopRules) -> "Course":
        """The course after one more evaluation, at its release."""
        window = rules.target.window if rules.target else 0
        course = replace(self, recent=(*self.recent, result.accuracy)[-window:] if window else ())
        return course if rules.stall is None else course._guarded(stamp, result, rules.stall)

    def _guarded(self, stamp: int, result: EvalResult, stall: Stall) -> "Course":
        better = {
            "acc": result.accuracy >= self.accuracy + stall.min_delta,
            "loss": result.loss <= self.loss * (1 - stall.loss_min_rel_delta),
        }  # fmt: skip
        moved = any(better.values()) if stall.on == "either" else better[stall.on]
        return replace(
            self,
            accuracy=result.accuracy if better["acc"] else self.accuracy,
            loss=result.loss if better["loss"] else self.loss,
            since=stamp if moved else self.since,
        )

    def converged(self, target: Target | None) -> Ending | None:
        """The last `window` accuracies are at or over the target."""
        if target is None or len(self.recent) < target.window or min(self.recent) < target.accuracy:
            return None
        return "CONVERGED", f"{target.window} evaluations in a row at or over {target.accuracy}"

    def stalled(self, stall: Stall | None, stamp: int) -> Ending | None:
        """No progress for a whole window of stamp time."""
        if stall is None or stamp - self.since < seconds(stall.window_s):
            return None
        what = {"acc": "accuracy has not", "loss": "loss has not", "either": "neither accuracy nor loss has"}[stall.on]
        return "STALLED", f"{what} improved for {in_seconds(stamp - self.since):.1f} s of stamp time"


def bound_reached(rules: StopRules, at: Progress, accepts: int) -> Ending | None:
    """The first count that is at its bound, such as `12 cycles`; None while none is."""
    counts = (("cycles", at.cycle, rules.cycles), ("commits", at.model_version, rules.commits), ("accepts", accepts, rules.accepts))
    return next((spent(rules, f"{count} {name}") for name, count, bound in counts if bound is not None and count >= bound), None)


def spent(rules: StopRules, reason: str) -> Ending:
    """A bound ends the run; with a target, before that was met."""
    if rules.target is None:
        return "COMPLETED", reason
    return "DID_NOT_CONVERGE", f"{reason}, and no {rules.target.window} evaluations in a row at or over {rules.target.accuracy}"
