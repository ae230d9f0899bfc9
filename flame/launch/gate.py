"""The gate: what stands in the way of a run, each issue one line with its remedy.

Two kinds. What *can't work* (data missing, compute that doesn't fit, no broker) is refused whatever is
said. What is only *unwise* (a gate that may never commit) is refused too, unless `--force`. K > C, K > N,
delays of 0 and unmatched order and pacing can't get this far: a condition with them can't be made.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec

from flame.config.availability import traces
from flame.config.condition import Condition
from flame.config.errors import ConfigError
from flame.config.world import World
from flame.launch.clean import Trace
from flame.launch.fits import fit
from flame.launch.measure import Machine, Measured
from flame.launch.plan import Plan
from flame.launch.starving import LOOKED_AT, at_once, ever_there, not_barred

PROBE_S = 3.0


@dataclass(frozen=True, slots=True)
class Issue:
    """what: with field and value. remedy: what to type. blocking: it can't work, not even with --force."""

    what: str
    remedy: str
    blocking: bool


def cannot(what: str, remedy: str) -> Issue:
    """It can't work."""
    return Issue(what, remedy, True)


def unwise(what: str, remedy: str) -> Issue:
    """It can work, and shouldn't be done by mistake."""
    return Issue(what, remedy, False)


def issues(plan: Plan, measured: Mapping[str, Measured], machine: Machine, alive: Sequence[Trace]) -> list[Issue]:
    """Everything that stands in the way, what can't work first."""
    found = [*_strays(alive), *_shared(plan)]
    for name, resolved in plan.baselines.items():
        found += _baseline(resolved.condition, measured[name], plan, machine)
    if plan.real is not None:
        found += _broker(plan.real)
    found += _memory(machine)
    return sorted(found, key=lambda issue: not issue.blocking)


def _strays(alive: Sequence[Trace]) -> Iterator[Issue]:
    for each in alive:
        if each.stray:
            yield cannot(f"{each.run.name} left processes behind: {', '.join(map(str, each.others))}", "add `--clean`, which ends them")


def _shared(plan: Plan) -> Iterator[Issue]:
    goals = {name: resolved.condition.goal for name, resolved in plan.baselines.items()}
    if len(set(goals.values())) > 1:
        listed = ", ".join(f"{name} {goal}" for name, goal in goals.items())
        yield cannot(
            f"`goal` K differs between baselines that are compared: {listed}", "give them one goal, or run them apart with `--only`"
        )


def _baseline(condition: Condition, measured: Measured, plan: Plan, machine: Machine) -> Iterator[Issue]:
    if measured.fault is not None:
        yield cannot(f"{condition.baseline}: {measured.fault.what}", measured.fault.hint)
    yield from _policies(condition)
    yield from _starving(condition)
    if plan.real is not None and condition.tier == "exact" and measured.fault is None:
        yield from _fits(condition, measured, plan.real, machine)


def _policies(condition: Condition) -> Iterator[Issue]:
    kinds, name = {rule.type for rule in condition.commit}, condition.baseline
    if kinds <= {"variance", "n_eff"}:
        gate = "a variance" if "variance" in kinds else "an n_eff"
        yield unwise(
            f"{name}: `commit` has {gate} gate and no cap: a bin that never agrees goes on for ever",
            "add `{type: cap, max: 60}` to `commit`",
        )
    for rule in ("target", "stall"):
        if getattr(condition.stop, rule) is not None and condition.eval.every == 0:
            yield cannot(f"{name}: `stop.{rule}` looks at evaluations, and `eval.every` is 0", "give `eval.every: 1`")
    yield from _sizes(condition)


def _sizes(condition: Condition) -> Iterator[Issue]:
    name, staying = condition.baseline, condition.trainers - len(condition.population.leaves)
    largest, dynamic = max(sizes.goal for sizes in condition.possible_sizes), condition.sizes.type != "static"
    if (condition.loop == "sync" or dynamic) and largest > staying:
        field = "sizes.goal_max" if dynamic else "goal"
        yield unwise(f"{name}: `{field}` K = {largest}, but only {staying} trainers stay to the end", f"lower `{field}` to {staying}")
    if dynamic and any(rule.type == "agg_goal" for rule in condition.commit):
        yield unwise(
            f"{name}: `sizes` {condition.sizes.type} under `agg_goal`: each bin takes one cycle, so K only falls",
            "give a `commit` rule that looks at the uploads, or `sizes: static`",
        )


def _starving(condition: Condition) -> Iterator[Issue]:
    goal, name = condition.goal, condition.baseline
    largest = max(sizes.goal for sizes in condition.possible_sizes)

    def short_of(there: int) -> str:
        """The first K that so many trainers can't fill, by the name of its field."""
        return f"`goal` K = {goal}" if there < goal else f"`sizes.goal_max` K = {largest}"

    def lower(there: int) -> str:
        return f"lower `{'goal' if there < goal else 'sizes.goal_max'}` to {max(there, 1)}"

    left = not_barred(condition.select, condition.trainers)
    if left < largest:
        yield unwise(
            f"{name}: {short_of(left)}, and `select.blacklist_share` leaves {left} trainers to choose from when the blacklist is full",
            f"lower it to {1 - largest / condition.trainers:.3g}, or give `select.blacklist: null`",
        )
    if condition.availability.trace == "syn_0" or condition.trainers > LOOKED_AT:
        return
    try:
        given = traces(condition)
    except ConfigError as error:
        yield cannot(f"{name}: {error.what}", error.hint)
        return
    trace, ever = f"under `availability.trace: {condition.availability.trace}`", ever_there(given, largest)
    if ever < largest:
        weight = cannot if ever < goal else unwise
        yield weight(
            f"{name}: {short_of(ever)}, and {trace} {ever} trainers are ever there",
            f"{lower(ever)}, or give more `trainers` or another trace",
        )
    if ever >= goal and condition.loop == "sync" and (most := at_once(given, min(ever, largest))) < min(ever, largest):
        yield unwise(
            f"{name}: {short_of(most)}, and {trace} at most {most} trainers are there at once: "
            "a synchronous cycle waits for one after another",
            f"{lower(most)}, give more `trainers`, or use `loop: async`",
        )


def _fits(condition: Condition, measured: Measured, world: World, machine: Machine) -> Iterator[Issue]:
    found = fit(condition, world.workers, machine.cores, measured.gradient_s, measured.evaluate_s or 0.0)
    if not found.ok:
        factor = condition.delays.factor
        yield cannot(
            f"{condition.baseline}: compute doesn't fit the delays: {found} (one gradient {measured.gradient_s:.3g} s)",
            f"lower `--delay-factor` (now {factor:g}), lower C, or give more workers on more cores",
        )


def _broker(world: World) -> Iterator[Issue]:
    from flame.runtime.access import Access
    from flame.runtime.broker import address, find_mosquitto
    from flame.runtime.probe import probe

    if world.broker == "embedded":
        if find_spec("amqtt") is None:
            yield cannot("`--broker embedded` needs the package amqtt, which isn't installed", "run `pip install amqtt`")
    elif world.broker == "mosquitto":
        if find_mosquitto() is None:
            yield cannot("`--broker mosquitto`: the program isn't installed", "run `apt-get install mosquitto`, or use `--broker embedded`")
    else:
        try:
            probe(*address(world.broker), PROBE_S, access=Access.of(world))
        except OSError as error:
            yield cannot(f"no broker answers at `{world.broker}`: {error}", "start it, correct HOST:PORT, or use `--broker embedded`")


def _memory(machine: Machine) -> Iterator[Issue]:
    if machine.needed > machine.available:
        yield cannot(
            f"about {machine.needed >> 20} MiB are needed, {machine.available >> 20} MiB are free",
            "lower `--workers` or `--pool`, or free some memory",
        )
