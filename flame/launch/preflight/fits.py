"""Whether measured compute fits the modelled delays (exact tier, real): one job alone is no measure.

A full cohort is handed out at one instant. Each worker runs its jobs one at a time, earliest due first,
so the j-th of them ends at j times the compute; it must not be later than its D. Which C of the N
trainers are chosen isn't known, so the fastest are taken: nothing is harder. That holds for one batch;
that it goes on holding, whatever the order of batches, needs room: the sum of compute / D over the
cohort, plus the evaluations, is at most LOAD of the cores. Where K and C may change, the largest C is
taken, and the K and C whose cycles are shortest.

Workers beyond the number of cores share them, and are looked at as one queue over the cores.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from flame.config.condition import Condition
from flame.config.devices import profiles
from flame.core.time import in_seconds, seconds
from flame.policies.sizes import Sizes

LOAD = 0.7
"""Share of the worker cores that compute may take."""


@dataclass(frozen=True, slots=True)
class Fit:
    """load: cores' worth of work. room: cores' worth that it may be. late: the first job that misses its D, in seconds (D, end)."""

    load: float
    room: float
    late: tuple[float, float] | None

    @property
    def ok(self) -> bool:
        """Whether the compute fits."""
        return self.late is None and self.load <= self.room

    def __str__(self) -> str:
        if self.late is not None:
            return f"a job with D = {self.late[0]:.3g} s would end after {self.late[1]:.3g} s"
        return f"compute takes {self.load:.2f} of at most {self.room:.2f} cores"


def fit(condition: Condition, workers: int, cores: int, gradient_s: float, evaluate_s: float) -> Fit:
    """Hold the measured seconds of one gradient and of one evaluation against the condition's delays."""
    delays = [profile.delay_ns for profile in profiles(condition).values()]
    usable = min(workers, cores, len(delays))
    most = max(sizes.concurrency for sizes in condition.possible_sizes)
    compute, cohort = seconds(gradient_s), min(most, len(delays))
    queues = [delays[first::workers] for first in range(min(workers, len(delays)))]
    missed = [first_late(queue, compute, 1, cohort) for queue in queues] + [first_late(delays, compute, usable, cohort)]
    late = min((found for found in missed if found is not None), default=None)
    load = sum(compute / delay for delay in sorted(delays)[:cohort]) + _evaluations(condition, delays, evaluate_s)
    return Fit(load, LOAD * usable, (in_seconds(late[0]), in_seconds(late[1])) if late else None)


def first_late(delays: Sequence[int], compute: int, cores: int, cohort: int) -> tuple[int, int] | None:
    """Of the `cohort` fastest, handed out at once to one queue over `cores`, the first that ends after its D: (D, end)."""
    for place, delay in enumerate(sorted(delays)[:cohort]):
        end = (place // cores + 1) * compute
        if end > delay:
            return delay, end
    return None


def _evaluations(condition: Condition, delays: Sequence[int], evaluate_s: float) -> float:
    """Cores' worth of evaluation, were each cycle to commit: one per `every` of the shortest cycles."""
    if condition.eval.every == 0:
        return 0.0
    shortest = min(_cycle_s(condition.loop, sorted(delays), sizes) for sizes in condition.possible_sizes)
    return evaluate_s / (shortest * condition.eval.every)


def _cycle_s(loop: str, delays: Sequence[int], sizes: Sizes) -> float:
    """Seconds of the shortest cycle: of the fastest C, in order of their delays, K accepts."""
    fastest = delays[: sizes.concurrency]
    if loop == "sync":
        return in_seconds(fastest[sizes.goal - 1])
    return sizes.goal / sum(1 / in_seconds(delay) for delay in fastest)
