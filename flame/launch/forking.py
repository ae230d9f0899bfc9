"""`flame resume RUN --fork-at CYCLE --set ...`: what if something had changed there.

A fork is the parent's condition with one change more (`config.changes`), simulated. Up to its cycle it is the parent, bit
for bit, and that is looked at: simulating it again is quicker than keeping a checkpoint of every cycle.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from rich.console import Console

from flame.config.condition import Condition
from flame.config.errors import ConfigError, explain
from flame.config.layers import Layer, Patch, height, settled, stack, without, writer
from flame.config.world import World
from flame.core.time import in_seconds
from flame.launch.run import Run, run
from flame.launch.screen.progress import GOOD, progress
from flame.telemetry.reader import TelemetryError
from flame.telemetry.rundir import Parent, RunDir

WELL, BAD = 0, 1
SAME = ("cycle", "cohort", "variance", "reason", "model", "state")
"""What of a closed cycle is equal in a fork and its parent."""


def fork_run(path: Path, cycle: int, sets: Sequence[str], err: Console) -> int:
    """Simulate the fork beside its parent; the exit code. Raises ConfigError for one that can't be."""
    try:
        parent = RunDir(path)
        condition, told = parent.condition, _closed(parent)
    except TelemetryError as error:
        raise ConfigError(f"`{path}` can't be forked: {error}", "give a run directory, one of `flame runs`") from None
    if not 0 < cycle < len(told):
        raise ConfigError(f"`{path.name}` has closed {len(told)} cycles, and can't be forked at {cycle}", f"give 1 to {len(told) - 1}")
    forked = _forked(condition, cycle, [Patch.parse(text) for text in sets])
    _reaches(forked, parent, cycle)
    world = World.model_validate(parent.world.model_dump() | {"kind": "sim", **_OF_NOBODY})
    shown = progress(forked.stop, err)
    try:
        name = parent.name.run_set if parent.name else "custom"
        done = run(forked, world, run_set=name, runs=path.parent, ui=shown, parent=Parent(path.name, cycle))
    finally:
        shown.close()
    err.print(_kinship(told, done, path.name, cycle), markup=False)
    return WELL if done.verdict in GOOD and done.cycles > cycle else BAD


_OF_NOBODY = {"broker": "embedded", "broker_user": None, "broker_ca": None, "remote": 0, "workers": 1}


def _forked(condition: Condition, cycle: int, patches: Sequence[Patch]) -> Condition:
    """The parent's condition with a change at the cycle; what ends the fork may be set from the start, and goes over the parent's."""
    if not patches:
        raise ConfigError("a fork without a change is its parent", "give `--set`, such as `--set server_opt.lr=0.1`")
    of_stop = [patch for patch in patches if patch.path[0] == "stop"]
    wanted = {".".join(patch.path): patch.value for patch in patches if patch not in of_stop}
    layers = [Layer("the parent's condition", condition.model_dump(mode="json", exclude={"changes"}))]
    plain = _of_a_target(stack(layers, of_stop), of_stop) if condition.stop.target is None else stack(layers, of_stop)
    earlier = [change.model_dump() for change in condition.changes if change.cycle < cycle]
    changes = [*earlier, {"cycle": cycle, "set": wanted}] if wanted else earlier
    plain |= {"changes": changes}
    try:
        return settled(Condition.strict, plain, layers, of_stop)
    except ValidationError as error:
        raise explain(error, Condition, plain, lambda place: writer(place, [], of_stop)) from None


def _of_a_target(plain: dict[str, Any], patches: Sequence[Patch]) -> dict[str, Any]:
    """Where a patch gave a target: without the parent's ceiling, and its having no stall guard, so that a target brings its own."""
    stop = plain["stop"]
    if not isinstance(stop, Mapping) or stop.get("target") is None:
        return plain
    for key in ("wall_s", *(["stall"] if stop["stall"] is None else [])):
        if height(("stop", key), [], patches) < 0:
            plain = without(plain, ("stop", key))
    return plain


def _reaches(forked: Condition, parent: RunDir, cycle: int) -> None:
    """Raises ConfigError where a bound ends the fork before its cycle opens: up to there it spends what its parent did."""
    before = parent.telemetry.frame("agg_round").sort("_seq").head(cycle)
    last = before.tail(1)
    spent = {
        "cycles": cycle, "commits": int(before["committed"].sum()), "accepts": int(last["accepts"][0]),
        "runtime_s": in_seconds(int(last["stamp_ns"][0])),
    }  # fmt: skip
    for name, by_then in spent.items():
        bound = getattr(forked.stop, name)
        if bound is not None and bound <= by_then:
            raise ConfigError(
                f"a fork of `{parent.label}` at {cycle} would end before its change: `stop.{name}` is {bound}",
                f"give more than {by_then:g}, or an earlier `--fork-at`",
            )


def _closed(run: RunDir | Run) -> list[tuple[object, ...]]:
    frame = run.telemetry.frame("agg_round") if isinstance(run, RunDir) else run.frame("agg_round")
    return list(frame.select(SAME).iter_rows())


def _kinship(told: list[tuple[object, ...]], done: Run, name: str, cycle: int) -> str:
    """How far the fork is its parent."""
    if done.cycles <= cycle:
        return f"fork of `{name}`: it ended after {done.cycles} cycles, before the change at {cycle}: {done.verdict}"
    mine = _closed(done)
    same = next((number for number, (one, two) in enumerate(zip(told, mine, strict=False)) if one != two), None)
    if same is None and len(mine) == len(told):
        return f"fork of `{name}`: nothing differs from it; the change changed nothing"
    if same is None:
        longer = "it" if len(mine) > len(told) else "its parent"
        return f"fork of `{name}`: the same bits for {min(len(mine), len(told))} cycles; {longer} goes on to {max(len(mine), len(told))}"
    if same >= cycle:
        return f"fork of `{name}`: the same bits up to cycle {same}, the change is at {cycle}"
    return (
        f"fork of `{name}`: it differs from cycle {same} on, before the change at {cycle}: a run in arrival order can't be simulated again"
    )
