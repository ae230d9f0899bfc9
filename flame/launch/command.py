"""`flame run`, step by step: resolve, pre-flight, ask, run, close."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from flame.config.experiments import load, parse_seeds
from flame.config.layers import Patch
from flame.config.world import World
from flame.launch.preflight import flags
from flame.launch.preflight.plan import Plan
from flame.launch.results import follow
from flame.launch.screen import consoles

WELL, BAD, REFUSED = 0, 1, 2


def list_run_sets(experiments: Path | None) -> int:
    """What could be run; nothing was."""
    from rich.table import Table

    registry = load(experiments)
    table = Table(box=None, padding=(0, 1), header_style="bold")
    for title in ("run-set", "baselines", "seeds", "about"):
        table.add_column(title, overflow="fold")
    for name, run_set in registry.run_sets.items():
        table.add_row(name, ", ".join(run_set.baselines), ", ".join(map(str, run_set.seeds)), run_set.about)
    consoles.err().print(table)
    consoles.err().print(f"hint: flame run {next(iter(registry.run_sets), 'NAME')} --mode both")
    return REFUSED


def from_flags(given: Mapping[str, Any], typed: Collection[str]) -> int:
    """`flame run` by its flags. given: each with its value. typed: those that somebody gave. The exit code. Raises ConfigError."""
    if not (given["run_set"] or given["named"]):
        return list_run_sets(given["experiments"])
    fields, carrying = ({name: given[name] for name in names} for names in (flags.FIELDS, flags.CARRYING))
    hooks = follow.wanted(given["after"], given["mode"]) - (set() if given["parity"] else {"parity"})
    made = plan(
        flags.one_name(given["run_set"], given["named"]), given["experiments"], flags.names(given["only"]), given["seeds"],
        flags.patches(fields, given["sets"] or []), flags.worlds(given["mode"], carrying, typed), given["runs"],
    )  # fmt: skip
    return run(made, dry_run=given["dry_run"], yes=given["yes"], force=given["force"], sweep=given["clean"], after=hooks)


def plan(
    run_set: str,
    experiments: Path | None,
    only: Sequence[str] | None,
    seeds: str | None,
    patches: Sequence[Patch],
    worlds: Sequence[World],
    runs: Path,
) -> Plan:
    """Everything resolved, nothing started. Raises ConfigError."""
    wanted = parse_seeds(seeds) if seeds is not None else None
    return Plan(run_set, load(experiments).resolve(run_set, only=only, seeds=wanted, patches=patches), worlds, runs)


def run(plan: Plan, *, dry_run: bool, yes: bool, force: bool, sweep: bool, after: frozenset[str] = frozenset()) -> int:
    """Pre-flight, then the runs, then what comes `after` them (`flame.launch.results.follow`). The exit code."""
    from flame.launch.preflight.findings import examine
    from flame.launch.preflight.issue import refused
    from flame.launch.preflight.table import show

    err = consoles.err()
    with err.status("looking at data, model and machine", spinner="dots"):
        found = examine(plan, sweep=sweep, dry=dry_run)
    show(plan, found, consoles.out() if dry_run else err, force=force)
    if refused(found.issues, force):
        return REFUSED
    if dry_run:
        return WELL
    count = len(plan.resolved) * len(plan.worlds)
    if not (yes or consoles.agreed(f"start {count} run{'s' if count > 1 else ''}?")):
        return REFUSED
    from flame.launch.batch import carry_out

    return WELL if carry_out(plan, consoles.out(), err, after) else BAD
