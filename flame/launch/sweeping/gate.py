"""What stands in the way of a sweep: what `flame run` looks at, for each point that is still to be run, said once.

A learner is built for each shape that learners have, which finds missing data and partitions; tasks are run on one of
each size. Memory is what this process has needed for that, and what the run of a point holds beside it.
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
from flame.launch.preflight.holding import held
from flame.launch.preflight.issue import Issue
from flame.launch.preflight.measure import Machine, Measured
from flame.launch.preflight.plan import Plan
from flame.launch.sweeping.arms import Arm

SIZE = ("task", "data", "model", "trainable", "toy", "surrogate")
SHAPE = (*SIZE, "partition", "tokens", "batch_size", "max_bins", "trainers", "estimator", "perturb", "eval")
"""Fields of a condition that its learner is made from."""
NAMED = 3
"""So many points are named with an issue."""
BOOKS_BYTES = 64 << 20
"""What a simulation takes beside its learner and its machines: journal, telemetry."""
WORLD = World(kind="sim")


@dataclass(frozen=True, slots=True)
class Findings:
    """issues: each once, with the points concerned. machine: `needed` and `most` are those of the largest simulation."""

    issues: Sequence[Issue]
    machine: Machine

    @property
    def room(self) -> int:
        """How many simulations this machine holds at once."""
        return max(1, min(self.machine.cores, self.machine.available // (self.machine.most + BOOKS_BYTES)))


def examine(arms: Sequence[Arm], runs: Path) -> Findings:
    """Look at everything that these simulations need."""
    learners, alive, plans = _Learners(), traces(runs), _plans(arms, runs)
    measured = {
        point: {name: learners.of(resolved.condition) for name, resolved in plan.baselines.items()} for point, plan in plans.items()
    }
    machines = {point: learners.machine.beside(measure.largest(found.values())) for point, found in measured.items()}
    concerned: dict[Issue, list[str]] = defaultdict(list)
    for point, plan in plans.items():
        for issue in gate.issues(plan, measured[point], machines[point], alive):
            concerned[issue].append(point)
    issues = [replace(issue, what=issue.what + _where(points, len(plans))) for issue, points in concerned.items()]
    needed, most = max(each.needed for each in machines.values()), max(each.most for each in machines.values())
    machine = replace(learners.machine, needed=needed, most=most)
    return Findings(sorted(issues, key=lambda issue: not issue.blocking), machine)


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
    """Each shape of learner is built once, each size measured once. machine: when this process needed most, without what a run holds."""

    def __init__(self) -> None:
        self.machine = measure.machine(0, broker=False)
        self._shapes: dict[str, Measured] = {}
        self._sizes: set[str] = set()

    def of(self, condition: Condition) -> Measured:
        """What is known of the learner of a condition: that it can't be built, at least; what the run holds is the condition's own."""
        shape = condition.model_dump_json(include=set(SHAPE))
        if shape not in self._shapes:
            self._shapes[shape] = self._look(condition)
            self.machine = max(self.machine, measure.machine(0, broker=False), key=lambda machine: machine.needed)
        found = self._shapes[shape]
        return found if found.fault else replace(found, holding=held(condition, found.parameters, found.vector))

    def _look(self, condition: Condition) -> Measured:
        size = condition.model_dump_json(include=set(SIZE))
        if size in self._sizes:
            built = measure.attempt(condition, prefix_cache=WORLD.prefix_cache)
            if isinstance(built, ConfigError):
                return Measured(built)
            return Measured(parameters=built.facts.layout.size, vector=built.facts.init.nbytes)
        found = measure.measure(condition, prefix_cache=WORLD.prefix_cache, evaluations=False)
        if found.fault is None:
            self._sizes.add(size)
        return found
