"""What the pre-flight finds out before anything is started: measured compute, the machine, and what stands in the way."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from flame.launch.folder.clean import Trace, clean, traces
from flame.launch.preflight.gate import issues
from flame.launch.preflight.issue import Issue
from flame.launch.preflight.measure import Machine, Measured, largest, machine, measure
from flame.launch.preflight.plan import Plan


@dataclass(frozen=True, slots=True)
class Findings:
    """What the pre-flight found. going: other runs on this machine that haven't ended. swept: strays that `--clean` would end."""

    measured: Mapping[str, Measured]
    machine: Machine
    issues: Sequence[Issue]
    going: Sequence[Trace] = ()
    swept: Sequence[Trace] = ()


def examine(plan: Plan, *, sweep: bool = False, dry: bool = False) -> Findings:
    """Look at everything that a run of `plan` needs. sweep: end strays of earlier runs first (`--clean`); dry: only say which."""
    cache = all(world.prefix_cache for world in plan.worlds)
    measured = {
        name: measure(resolved.condition, prefix_cache=cache, evaluations=plan.real is not None, device=plan.worlds[0].device)
        for name, resolved in plan.baselines.items()
    }
    here = machine(_processes(plan), plan.real is not None and ":" not in plan.real.broker).beside(largest(measured.values()))
    alive = _alive(plan, sweep and not dry)
    swept = [each for each in alive if each.stray] if sweep and dry else []
    in_the_way = [each for each in alive if each not in swept]
    return Findings(measured, here, issues(plan, measured, here, in_the_way), [each for each in alive if each.going], swept)


def _alive(plan: Plan, sweep: bool) -> list[Trace]:
    found = traces(plan.runs)
    if sweep and any(each.stray for each in found):
        clean(found)
        found = traces(plan.runs)
    return found


def _processes(plan: Plan) -> int:
    """Processes with a learner of their own, beside the launcher, of the larger world."""
    real = 1 + min(plan.real.workers, max(condition.trainers for condition in plan.conditions)) if plan.real else 0
    return max(real, plan.sim.pool if plan.sim else 0)
