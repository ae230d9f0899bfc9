"""K that follows how slowly V falls (the `flame` fork's adaptive_k_var_tracking; algorithms.md, section 9).

Published are the name and the numbers: 15 iterations a bin as the target, K moved by 2, a window of 6, K in
5..15, bounds on C. The rule itself isn't, so this one is ours. V of independent uploads falls as 1/n, whatever
the K by which they came: what V and the commit rules ask of a bin is a number of *uploads*, and the cycles that
the bin takes are that number over K. So bins are compared by uploads, and a change of K spoils no history:

    needed    mean number of uploads of the last `window` committed bins, or, where that is more, the same with
              the open bin for the newest: it has that many already, and needs more
    raise     needed > target K: a bin takes more than `target` cycles. K + step, at most goal_max
    lower     needed <= target (K - step): at the lesser K it would still take no more. K - step, at least
              goal_min; only once a bin has committed
    C         K x (the condition's C / its K), rounded, halves up; in its bounds, and never under K

K moves by one step at most, where a cycle opens: in the middle of a bin too, when it drags on. With a need
that doesn't change, K comes to rest at the least K that meets the target, or one step above; nothing makes it
swing. An open bin can raise K and never lower it.

Example, by hand: target 2, step 2, window 2, K in 2..8, at first K = 4 and C = 6.

    close  bin's uploads  bins committed   needed                    next K, C
    1      4, kept        -                4 <= 2 x 4, none is done  4, 6
    2      8, kept        -                8                         4, 6
    3      12, kept       -                12 > 8                    6, 9
    4      18, commits    18               18 > 12                   8, 12
    5      8, commits     18, 8            13 <= 16, but > 2 x 6     8, 12
    6      8, commits     8, 8             8 <= 12                   6, 9
    7      6, kept        8, 8             max(8, 7) <= 2 x 4        4, 6
    8      10, commits    8, 10            9 > 8                     6, 9

Under `agg_goal` every bin takes one cycle, so K only falls; the pre-flight says so.
"""

from collections.abc import Sequence
from statistics import fmean
from typing import Literal, NamedTuple

from pydantic import PositiveInt

from flame.policies.policy import Policy
from flame.policies.sizes.view import Sizes, SizesView


class Tracked(NamedTuple):
    """K in force, and how many uploads the last committed bins had, the oldest first."""

    goal: int
    bins: tuple[int, ...] = ()


class VarTracking(Policy):
    """K by the uploads that bins need, C in proportion.

    target: cycles a bin should take. concurrency_min, concurrency_max: bounds of C; None for 1, and for N
    (or the condition's C, where that is more).
    """

    type: Literal["var_tracking"] = "var_tracking"
    target: PositiveInt = 15
    step: PositiveInt = 2
    window: PositiveInt = 6
    goal_min: PositiveInt = 5
    goal_max: PositiveInt = 15
    concurrency_min: PositiveInt | None = None
    concurrency_max: PositiveInt | None = None

    def sample(self, view: SizesView, state: Tracked | None) -> tuple[Sizes, Tracked]:
        """K and C of the cycle that opens."""
        goal, bins = state or Tracked(view.start.goal)
        if view.committed:
            bins = (*bins, view.pooled)[-self.window :]
        goal = self._moved(goal, bins, 0 if view.committed else view.pooled)
        return self._sizes(goal, view.start, view.trainers), Tracked(goal, bins)

    def _moved(self, goal: int, bins: tuple[int, ...], pooled: int) -> int:
        """The next K. pooled: uploads of the open bin."""
        needed = max(fmean(bins) if bins else 0.0, fmean((*bins, pooled)[-self.window :]))
        lower = max(goal - self.step, self.goal_min)
        if needed > self.target * goal:
            return min(goal + self.step, self.goal_max)
        return lower if bins and needed <= self.target * lower else goal

    def _sizes(self, goal: int, start: Sizes, trainers: int) -> Sizes:
        proportional = (2 * goal * start.concurrency + start.goal) // (2 * start.goal)
        low, high = self._bounds(start, trainers)
        return Sizes(goal, max(goal, min(max(proportional, low), high)))

    def _bounds(self, start: Sizes, trainers: int) -> tuple[int, int]:
        """Of C."""
        return self.concurrency_min or 1, self.concurrency_max or max(trainers, start.concurrency)

    def possible(self, start: Sizes, trainers: int) -> Sequence[Sizes]:
        """All that can come into force, by K."""
        return [self._sizes(goal, start, trainers) for goal in range(self.goal_min, self.goal_max + 1)]

    def misfit(self, start: Sizes, trainers: int) -> str | None:
        """What in the bounds doesn't fit K, C and N, with its remedy; None: nothing."""
        k, c = start
        low, high = self._bounds(start, trainers)
        if not self.goal_min <= k <= self.goal_max:
            given = f"`sizes.goal_min` = {self.goal_min} .. `sizes.goal_max` = {self.goal_max}"
            return f"`goal` K = {k} is outside {given}; give a `goal` within, or bounds around {k}"
        if self.goal_max > trainers:
            return (
                f"`sizes.goal_max` = {self.goal_max} is over `trainers` N = {trainers}: such a cycle could never close; "
                f"lower it (`goal_max: {trainers}`) or raise N (`trainers: {self.goal_max}`)"
            )
        if self.concurrency_max and high > trainers:
            return (
                f"`sizes.concurrency_max` = {high} is over `trainers` N = {trainers}: slots would stay empty; "
                f"lower it (`concurrency_max: {trainers}`) or raise N (`trainers: {high}`)"
            )
        if high < self.goal_max:
            return (
                f"`sizes.concurrency_max` = {high} is under `sizes.goal_max` = {self.goal_max}: K could never get there; "
                f"lower `goal_max` to {high}, or raise `concurrency_max` to {self.goal_max}"
            )
        if not low <= c <= high:
            return (
                f"`concurrency` C = {c} is outside {low} .. {high}, the bounds of C in `sizes`; "
                "give a `concurrency` within, or other bounds (`sizes.concurrency_min`, `sizes.concurrency_max`)"
            )
        return None
