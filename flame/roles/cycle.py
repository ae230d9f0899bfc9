"""The cycle: accepts are counted, pooled, judged. The only place where progress advances.

A cycle closes at K accepts; what came beyond K is carried into the next one. The bin's uploads stay
pooled over its cycles. At a close the commit rules see the pool: KEEP advances the iteration and
leaves the model alone; a commit advances model version and bin, and empties the pool.

Uploads are in canonical order (stamp, node, id), which is the order of their release.
"""

from dataclasses import dataclass

import numpy as np

from flame.core.messages import Payload
from flame.core.progress import Progress
from flame.core.tensor import Tensor
from flame.learn.params import Vector, half_variance, mean_square, total, vector, weighted_mean
from flame.policies.commit import BinView
from flame.roles.roster import Row


@dataclass(slots=True)
class Upload:
    """One accepted update. rate, staleness and gated are those of its acceptance; stamp that of its release; sent: what delta came as."""

    row: Row
    stamp: int
    delta: Tensor
    rate: float
    staleness: float
    sent: Payload
    gated: bool = False


class Cycle:
    """The open cycle of the open bin.

    slots: the most that a release may come from, C or what was still to be answered at the start, where a C that fell is less.
    goal, concurrency: K and C as sampled at this cycle's start. quota: how many more this cycle may
    dispatch (sync); None for no bound but C (async). squares: whether a commit rule wants the mean square.
    """

    def __init__(self, bins: int, *, squares: bool = False) -> None:
        self.progress = Progress()
        self.goal = self.concurrency = self.slots = 0
        self.quota: int | None = None
        self.accepted: list[Upload] = []
        self.pool: list[Upload] = []
        self._bins, self._squares = bins, squares
        self._sum: Vector | None = None
        self._summed = 0

    def open(self, goal: int, concurrency: int, quota: int | None, unanswered: int = 0) -> None:
        """Sample K and C for the cycle that starts. K := clamp(K, 1, C). unanswered: assigns that are out."""
        self.slots = max(concurrency, unanswered)
        self.goal, self.concurrency, self.quota = max(1, min(goal, concurrency)), concurrency, quota

    @property
    def full(self) -> bool:
        """K accepts are in."""
        return len(self.accepted) >= self.goal

    def running(self) -> Vector | None:
        """The rate-weighted sum (p,) of what this cycle has accepted, in order and in float64; None before the first.

        It is brought up to date when it is asked for, so that rates which don't want it cost nothing.
        """
        for upload in self.accepted[self._summed :]:
            weighed = upload.rate * vector(upload.delta).astype(np.float64)
            self._sum = weighed if self._sum is None else self._sum + weighed
        self._summed = len(self.accepted)
        return self._sum

    def close(self) -> tuple[list[Upload], BinView]:
        """Cut the first K accepts into the bin's pool. The cohort, and what the commit rules may look at."""
        cohort, self.accepted = self.accepted[: self.goal], self.accepted[self.goal :]
        self._sum, self._summed = None, 0
        self.pool += cohort
        deltas = [upload.delta for upload in self.pool]
        squares = mean_square(deltas) if self._squares else None
        return cohort, BinView(self.progress.iteration, len(deltas), half_variance(deltas), squares)

    def aggregate(self) -> Vector:
        """G (p,): one mean over every upload of the bin, each with the rate of its acceptance."""
        return weighted_mean([upload.delta for upload in self.pool], [upload.rate for upload in self.pool])

    def keep(self) -> None:
        """The bin goes on: fresh perturbations of the same samples."""
        at = self.progress
        self.progress = Progress(at.round, at.data_id, at.iteration + 1, at.model_version, at.cycle + 1)

    def commit(self) -> Tensor | None:
        """The model has moved: next bin, next version. Returns u (p,), the sum of the bin's uploads."""
        at = self.progress
        lap, data_id = divmod(at.data_id + 1, self._bins)
        self.progress = Progress(at.round + lap, data_id, 0, at.model_version + 1, at.cycle + 1)
        direction = total(upload.delta for upload in self.pool)
        self.pool = []
        return direction
