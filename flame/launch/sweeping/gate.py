"""What stands in the way of a sweep: what `flame run` looks at, for each point that is still to be run, said once.

A learner is built for each shape that learners have, which finds missing data and partitions; tasks are run on one of
each size, which is what the simulations need memory for.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from flame.config.condition import Condition
from flame.config.errors import ConfigError
from flame.config.world import World
from flame.launch.folder.clean import traces
from flame.launch.preflight import gate, measure
from flame.launch.preflight.issue import Issue
from flame.launch.preflight.measure import Machine, Measured
from flame.launch.preflight.plan import Plan
from flame.launch.sweeping.arms import Arm

SIZE = ("task", "data", "model", "trainable")
SHAPE = (*SIZE, "toy", "surrogate", "partition", "tokens", "batch_size", "max_bins", "trainers", "estimator", "perturb", "eval")
"""Fields of a condition that its learner is made from."""
NAMED = 3
"""So many points are named with an issue."""
BOOKS_BYTES = 64 << 20
"""What a simulation takes beside its learner: machines, journal, telemetry."""
WORLD = World(kind="sim")


@dataclass(frozen=True, slots=True)
class Findings:
    """issues: each once, with the points concerned. machine: `needed` is what this process needs with the largest learner."""

    issues: Sequence[Issue]
    machine: Machine

    def refuse(self, force: bool) -> bool:
        """Whether the sweep may not start."""
        return any(issue.blocking or not force for issue in self.issues)

    @property
    def room(self) -> int:
        """How many simulations this machine holds at once."""
        return max(1, min(self.machine.cores, self.machine.available // (self.machine.most + BOOKS_BYTES)))


def examine(arms: Sequence[Arm], runs: Path) -> Findings:
    """Look at everything that these simulations need."""
    learners, alive = _Learners(), traces(runs)
    concerned: dict[Issue, list[str]] = defaultdict(list)
    for point, plan in _plans(arms, runs).items():
        measured = {name: learners.of(resolved.condition) for name, resolved in plan.baselines.items()}
        for issue in gate.issues(plan, measured, learners.machine, alive):
            concerned[issue].append(point)
    total = len({arm.place for arm in arms})
    found = [replace(issue, what=issue.what + _where(points, total)) for issue, points in concerned.items()]
    return Findings(sorted(found, key=lambda issue: not issue.blocking), learners.machine)


def _plans(arms: Sequence[Arm], runs: Path) -> Mapping[str, Plan]:
    """What would be run at each point."""
    at: dict[str, list[Arm]] = defaultdict(list)
    for arm in arms:
        at[arm.place].append(arm)
    return {place: Plan(group[0].resolved.run_set, [arm.resolved for arm in group], [WORLD], runs) for place, group in at.items()}


def _where(points: Sequence[str], total: int) -> str:
    if len(points) == total:
        return ""
    more = f" and {len(points) - NAMED} more" if len(points) > NAMED else ""
    return f" (at {', '.join(points[:NAMED])}{more})"


class _Learners:
    """Each shape of learner is built once, each size measured once. machine: with the most that this process has needed."""

    def __init__(self) -> None:
        self.machine = measure.machine(0, broker=False)
        self._shapes: dict[str, Measured] = {}
        self._sizes: set[str] = set()

    def of(self, condition: Condition) -> Measured:
        """What is known of the learner of a condition: that it can't be built, at least."""
        shape = condition.model_dump_json(include=set(SHAPE))
        if shape not in self._shapes:
            self._shapes[shape] = self._look(condition)
            now = measure.machine(0, broker=False)
            self.machine = replace(now, needed=max(now.needed, self.machine.needed))
        return self._shapes[shape]

    def _look(self, condition: Condition) -> Measured:
        size = condition.model_dump_json(include=set(SIZE))
        if size in self._sizes:
            built = measure.attempt(condition, prefix_cache=WORLD.prefix_cache)
            return Measured(built) if isinstance(built, ConfigError) else Measured()
        found = measure.measure(condition, prefix_cache=WORLD.prefix_cache, evaluations=False)
        if found.fault is None:
            self._sizes.add(size)
        return found
