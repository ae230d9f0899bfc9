"""The policies in force, and what they remember. The only place where they change (`config.changes`): as a cycle opens.

A policy that stays of its type keeps its state through a change of its numbers; one of another type starts anew.
"""

from typing import Any

from flame.config.condition import Condition
from flame.learn.params import Vector
from flame.policies.commit import BinView, NEff, Variance, first_match
from flame.policies.rate import Rate
from flame.policies.select import SelectView
from flame.policies.server_opt import StepView
from flame.policies.sizes import SizesView
from flame.policies.staleness import Staleness


class InForce:
    """Of one aggregator. threshold: of the variance rule, None without one. scores: of the selector's last choice."""

    def __init__(self, condition: Condition) -> None:
        self._phases, self._condition = condition.phases, condition
        self._commit: list[Any] = [None] * len(condition.commit)
        self._select: Any = None
        self._step: Any = None
        self._sizes: Any = None

    @property
    def wants_squares(self) -> bool:
        """Whether a commit rule, of now or later, wants the mean square of the uploads."""
        return any(isinstance(rule, NEff) for phase in self._phases.values() for rule in phase.commit)

    @property
    def rate(self) -> Rate:
        """How an accepted upload is weighed."""
        return self._condition.rate

    @property
    def staleness(self) -> Staleness:
        """Which uploads count."""
        return self._condition.staleness

    @property
    def threshold(self) -> float | None:
        """Of the variance rule, None without one."""
        return next((rule.threshold for rule in self._condition.commit if isinstance(rule, Variance)), None)

    def open(self, cycle: int) -> None:
        """A cycle opens: what changes with it, changes now."""
        later = self._phases.get(cycle) if cycle else None
        if later is None:
            return
        before, self._condition = self._condition, later
        if [rule.type for rule in before.commit] != [rule.type for rule in later.commit]:
            self._commit = [None] * len(later.commit)
        self._select = self._select if before.select.type == later.select.type else None
        self._step = self._step if before.server_opt.type == later.server_opt.type else None
        self._sizes = self._sizes if before.sizes.type == later.sizes.type else None

    def judge(self, view: BinView) -> str:
        """Why the cycle that closes commits, or KEEP."""
        reason, self._commit = first_match(self._condition.commit, view, self._commit)
        return reason

    def step(self, theta: Vector, aggregate: Vector, view: StepView) -> Vector:
        """The next theta (p,)."""
        moved, self._step = self._condition.server_opt.step(theta, aggregate, view, self._step)
        return moved

    def sample(self, pooled: int, committed: bool) -> tuple[int, int]:
        """K and C of the cycle that opens. pooled: uploads of the bin so far; committed: whether it closed just now."""
        view = SizesView(self._condition.start, self._condition.trainers, pooled, committed)
        (goal, concurrency), self._sizes = self._condition.sizes.sample(view, self._sizes)
        return goal, concurrency

    def choose(self, view: SelectView, want: int) -> list[str]:
        """Who gets an assign, `want` at the most."""
        chosen, self._select = self._condition.select.choose(view, want, self._select)
        return chosen

    def chosen_by(self) -> tuple[str, Any]:
        """The selector's name, and the scores of its last choice."""
        select = self._condition.select
        return select.type, select.scores(self._select)
