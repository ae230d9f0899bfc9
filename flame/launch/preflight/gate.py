"""The gate: what stands in the way of a run, each issue one line with its remedy.

Two kinds. What *can't work* (data missing, compute that doesn't fit, no broker) is refused whatever is
said. What is only *unwise* (a gate that may never commit) is refused too, unless `--force`. K > C, K > N,
delays of 0 and unmatched order and pacing can't get this far: a condition with them can't be made.
"""

from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from shutil import disk_usage

from flame.config.condition import Condition
from flame.config.errors import ConfigError
from flame.config.fingerprint import SHARED
from flame.config.outside import changed
from flame.config.world import World
from flame.folders import closed, there
from flame.launch.folder.clean import Trace
from flame.launch.preflight.fits import fit
from flame.launch.preflight.goals import growing, starving
from flame.launch.preflight.issue import Issue, cannot, unwise
from flame.launch.preflight.measure import Machine, Measured, placed
from flame.launch.preflight.placement import crowded
from flame.launch.preflight.plan import Plan

PROBE_S = 3.0
ROOM = 64 << 20
"""Bytes of disk below which no run is begun."""


def issues(plan: Plan, measured: Mapping[str, Measured], machine: Machine, alive: Sequence[Trace]) -> list[Issue]:
    """Everything that stands in the way, what can't work first."""
    found = [*_strays(alive), *_folder(plan.runs), *_shared(plan), *_latency(plan.sim)]
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


def _folder(runs: Path) -> Iterator[Issue]:
    fault = closed(runs, "--runs")
    if fault is not None:
        yield cannot(fault.what, fault.hint)
    elif (free := disk_usage(there(runs)).free) < ROOM:
        yield cannot(f"`--runs {runs}`: {free >> 20} MiB of disk are free", f"free some, {ROOM >> 20} MiB at least, or use another disk")


def _latency(sim: World | None) -> Iterator[Issue]:
    from flame.runtime.compute.latency import latency_of

    try:
        if sim is not None:
            latency_of(sim)
    except ConfigError as error:
        yield cannot(error.what, error.hint)


def _shared(plan: Plan) -> Iterator[Issue]:
    conditions = [resolved.condition for resolved in plan.baselines.values()]
    for field in SHARED:
        if field != "goal" and any(getattr(each, field) != getattr(conditions[0], field) for each in conditions):
            yield unwise(
                f"`{field}` differs between baselines that are compared: they answer different questions",
                f"set `{field}` for all of them, or run them apart with `--only`",
            )
    goals = {name: resolved.condition.goal for name, resolved in plan.baselines.items()}
    if len(set(goals.values())) > 1:
        listed = ", ".join(f"{name} {goal}" for name, goal in goals.items())
        yield cannot(
            f"`goal` K differs between baselines that are compared: {listed}", "give them one goal, or run them apart with `--only`"
        )


def _baseline(condition: Condition, measured: Measured, plan: Plan, machine: Machine) -> Iterator[Issue]:
    if measured.fault is not None:
        yield cannot(f"{condition.baseline}: {measured.fault.what}", measured.fault.hint)
    yield from _outside(condition)
    yield from _policies(condition)
    yield from starving(condition)
    if plan.real is not None and condition.tier == "exact" and measured.fault is None:
        yield from _fits(condition, measured, plan.real, machine)
    if plan.real is not None and measured.device_bytes:
        yield from crowded(*placed(condition, plan.real), measured.device_bytes)


def _outside(condition: Condition) -> Iterator[Issue]:
    for policy, now in changed(condition):
        yield cannot(
            f"{condition.baseline}: the source of `{policy.type}` is {now}, and the condition wants {policy.source}",
            "bring that source back, or leave `source` out, which makes another condition",
        )


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
    yield from growing(condition)


def _fits(condition: Condition, measured: Measured, world: World, machine: Machine) -> Iterator[Issue]:
    found = fit(condition, world.workers, machine.cores, measured.gradient_s, measured.evaluate_s or 0.0)
    if not found.ok:
        factor = condition.delays.factor
        yield cannot(
            f"{condition.baseline}: compute doesn't fit the delays: {found} (one gradient {measured.gradient_s:.3g} s)",
            f"lower `--delay-factor` (now {factor:g}), lower C, or give more workers on more cores",
        )


def _broker(world: World) -> Iterator[Issue]:
    from flame.runtime.brokers.broker import address, find_mosquitto
    from flame.runtime.transport.access import Access
    from flame.runtime.transport.probe import probe

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
    elif machine.most > machine.available:
        yield unwise(
            f"up to {machine.most >> 20} MiB may be needed, for uploads of long bins and weights of all trainers; "
            f"{machine.available >> 20} MiB are free",
            "lower the cap of `commit`, K or N, or free some memory",
        )
