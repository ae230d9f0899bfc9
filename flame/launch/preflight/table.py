"""The pre-flight as a table: what will be launched, read back from the launch objects, and what stands in the way.

    shared condition    what all runs have in common
    baselines           one row each, their knobs as columns; what differs and what was overridden is marked
    machine             cores, memory, broker, digests, measured compute against D
    gate                each issue one line with its remedy

Marks are signs as well as colours, so that nothing is lost without colour. A terminal that is too
narrow for the table gets it turned: knobs as rows.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.measure import Measurement
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from flame.config.condition import Condition, Partition
from flame.config.devices import profiles
from flame.config.errors import POLICIES
from flame.config.experiments import Resolved
from flame.config.fingerprint import condition_fp, run_fp
from flame.config.world import World
from flame.core.time import in_seconds
from flame.launch.preflight.findings import Findings
from flame.launch.preflight.fits import fit
from flame.launch.preflight.issue import Issue
from flame.launch.preflight.measure import Machine, Measured, placed
from flame.launch.preflight.placement import report
from flame.launch.preflight.plan import Plan
from flame.learn.device import visible
from flame.policies import heard

KNOBS = ("concurrency", *POLICIES)
"""Columns of the table, whether they differ or not."""
DIFFERS, OVERRIDDEN = "≠", "!"


# ---- the screen


def show(plan: Plan, found: Findings, console: Console, *, force: bool = False) -> None:
    """Print all of it."""
    _header(console, "shared condition")
    console.print(_grid(shared_rows(plan)))
    _header(console, "baselines")
    _print_table(plan, console)
    _header(console, "machine")
    console.print(_grid(machine_rows(plan, found)))
    _header(console, "gate")
    if found.issues:
        console.print(gate(found.issues, force))
    else:
        console.print(Text("  nothing stands in the way", "green"))
    for each in found.swept:
        console.print(Text(f"  `--clean` would end {', '.join(map(str, each.others))}, which {each.run.name} left behind"))


def _header(console: Console, title: str) -> None:
    console.print(Rule(Text(title, "bold"), align="left", characters="-" if console.options.ascii_only else "━", style="bold"))


def gate(found: Sequence[Issue], force: bool) -> Table:
    """Each issue as a line with its remedy."""
    grid = Table.grid(padding=(0, 2), pad_edge=True)
    for issue in found:
        line = Text(f"{issue.what}; {issue.remedy}")
        if not issue.blocking:
            line.append("; forced" if force else "; or run it all the same with `--force`", "dim")
        grid.add_row(Text("can't work", "bold red") if issue.blocking else Text("unwise", "yellow"), line)
    return grid


def _grid(rows: Sequence[tuple[str, str]]) -> Table:
    grid = Table.grid(padding=(0, 2), pad_edge=True)
    grid.add_column(style="cyan", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in rows:
        grid.add_row(Text(name), _cell(value))
    return grid


# ---- (1) the shared condition


def shared_rows(plan: Plan) -> list[tuple[str, str]]:
    """Field and value of what all conditions have in common, then the seeds and the fingerprint."""
    resolved, *_ = plan.resolved
    first, *others = [each.condition for each in plan.baselines.values()]
    rows = []
    for name in _fields([first, *others]):
        value = getattr(first, name)
        if name not in KNOBS and all(getattr(other, name) == value for other in others):
            rows.append((name, _marked(resolved, name)))
    prints = list(dict.fromkeys(condition_fp(condition) for condition in plan.conditions))
    return [
        ("run-set", f"{plan.run_set}, tier {first.tier}"), *rows,
        ("seeds", ", ".join(map(str, plan.seeds))),
        ("condition_fp", prints[0] if len(prints) == 1 else f"{', '.join(prints)}: the baselines can't be compared"),
    ]  # fmt: skip


def _fields(conditions: Sequence[Condition]) -> list[str]:
    """Fields that one of the conditions hears, as `Condition.HEARD` has it."""
    unheard = [{rule.key for rule in Condition.HEARD if not rule.hears(heard.inner(each, rule.by))} for each in conditions]
    silent = {"baseline", "seed"}.union(set.intersection(*unheard))
    return [name for name in Condition.model_fields if name not in silent]


def in_words(name: str, value: Any) -> str:
    """A field as one short line; `type` first, absent and empty parts left out."""
    if isinstance(value, Partition):
        return value.name
    if hasattr(value, "model_dump"):
        value = value.model_dump(mode="json")
    if isinstance(value, Mapping):
        parts = [str(value["type"])] if "type" in value else []
        parts += [
            f"{key} {in_words(key, inner)}"
            for key, inner in value.items()
            if key != "type" and not (inner is None or inner is False or inner == {})
        ]
        return ", ".join(parts) or "-"
    if isinstance(value, list | tuple):
        return (" " if name == "values" else ", then ").join(in_words("", inner) for inner in value)
    if value is None or isinstance(value, bool):
        return {None: "-", True: "yes", False: "no"}[value]
    return f"{value:g}" if isinstance(value, float) else str(value)


# ---- (2) the baselines


def _print_table(plan: Plan, console: Console) -> None:
    names, header, rows = table_cells(plan)
    wide = _table(["baseline", *header], [[name, *row] for name, row in zip(names, rows, strict=True)])
    if Measurement.get(console, console.options, wide).minimum > console.width or _wraps(console, wide):
        turned = [[knob, *(row[place] for row in rows)] for place, knob in enumerate(header)]
        wide = _table(["knob", *names], turned)
    console.print(wide)
    legend = [f"{DIFFERS} differs between baselines"] if len(names) > 1 else []
    legend += (
        [f"{OVERRIDDEN} set by an override of the run-set, or by a flag"] if any(resolved.changed for resolved in plan.resolved) else []
    )
    if legend:
        console.print(Text(f"  {', '.join(legend)}", "dim"))


def _wraps(console: Console, table: Table) -> bool:
    """Whether cells would be folded to less than is readable."""
    return Measurement.get(console, console.options.update(max_width=1000), table).maximum > 1.6 * console.width


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    table = Table(box=None, padding=(0, 1), pad_edge=True, header_style="bold")
    for title in header:
        table.add_column(Text(title, "bold yellow" if title.endswith(DIFFERS) else "bold"), overflow="fold")
    for row in rows:
        table.add_row(*(_cell(text) for text in row))
    return table


def _cell(text: str) -> Text:
    style = "bold magenta" if text.startswith(f"{OVERRIDDEN} ") else "bold yellow" if text.endswith(DIFFERS) else ""
    return Text(text, style)


def table_cells(plan: Plan) -> tuple[list[str], list[str], list[list[str]]]:
    """Baselines, knobs (those that differ are marked), and a row of values per baseline (overridden ones are marked)."""
    baselines = list(plan.baselines.values())
    conditions = [resolved.condition for resolved in baselines]
    extra = [name for name in _fields(conditions) if name not in KNOBS and len({_plain(each, name) for each in conditions}) > 1]
    knobs = [*KNOBS, *extra]
    header = [f"{knob} {DIFFERS}" if len({_plain(each, knob) for each in conditions}) > 1 else knob for knob in knobs]
    rows = [[_marked(resolved, knob) for knob in knobs] for resolved in baselines]
    fingerprints = [" ".join(run_fp(each) for each in plan.conditions if each.baseline == name) for name in plan.baselines]
    return list(plan.baselines), [*header, "run_fp"], [[*row, prints] for row, prints in zip(rows, fingerprints, strict=True)]


def _plain(condition: Condition, name: str) -> str:
    return in_words(name, getattr(condition, name))


def _marked(resolved: Resolved, knob: str) -> str:
    text = _plain(resolved.condition, knob)
    return f"{OVERRIDDEN} {text}" if knob in resolved.changed else text


# ---- (3) the machine


def machine_rows(plan: Plan, found: Findings) -> list[tuple[str, str]]:
    """Worlds, cores, memory, digests, measured compute, and what was asked for and can't run."""
    here = found.machine
    rows = [("world", _world(world)) for world in plan.worlds]
    devices = ", ".join(sorted({each.device for each in found.measured.values()}))
    rows += [
        ("cores", f"{here.cores}; torch with one thread per process; device {devices}"),
        ("memory", f"about {here.needed >> 20} MiB needed, {here.most >> 20} MiB at most, {here.available >> 20} MiB free"),
        ("GPUs", ", ".join(here.gpus) or "no GPU"),
        ("runs", str(plan.runs)),
        *(("busy", f"{each.run.name} is still going (pid {each.launcher}), and takes compute from this one") for each in found.going),
    ]
    rows += [("seats", line) for line in _seats(plan, found)]
    for name, resolved in plan.baselines.items():
        rows += _compute_rows(name, resolved.condition, found.measured[name], plan, here)
    return list(dict.fromkeys(rows))


def _seats(plan: Plan, found: Findings) -> list[str]:
    if plan.real is None or any(each.fault for each in found.measured.values()):
        return []
    seated, _ = placed(plan.conditions[0], plan.real)
    return report(seated, visible() if plan.real.device != "cpu" else ())


def _world(world: World) -> str:
    how = f"broker {world.broker}, {world.workers} workers" if world.kind == "real" else f"pool {world.pool or 'none, inline'}"
    wire = ", wire roundtrip" if world.kind == "sim" and world.wire == "roundtrip" else ""
    wire += f", latency {world.latency} (draw {world.draw})" if world.kind == "sim" and world.latency else ""
    cache = "" if world.prefix_cache else ", no prefix cache"
    return f"{world.kind}, {how}, telemetry {world.level}, blobs {world.blobs}{wire}{cache}"


def _compute_rows(name: str, condition: Condition, measured: Measured, plan: Plan, here: Machine) -> list[tuple[str, str]]:
    if measured.fault is not None:
        return [(name, "can't be built, see below")]
    delays = [in_seconds(profile.delay_ns) for profile in profiles(condition).values()]
    took = f"gradient {_seconds(measured.gradient_s)}"
    took += "" if measured.evaluate_s is None else f", evaluation {_seconds(measured.evaluate_s)}"
    spread = f"D {_seconds(min(delays))} to {_seconds(max(delays))}"
    rows = [
        ("data", f"{condition.data or condition.task}, digest {measured.data[:16]}, {measured.bins} bins a lap"),
        ("model", f"{measured.parameters} trainable parameters, frozen part {measured.model[:16]}"),
        (name, f"{took}; {spread}{_fitting(condition, measured, plan, here)}"),
        ("step", f"{name}: by {condition.server_opt.type} a steady G moves theta by {condition.server_opt.gain}"),
    ]
    return rows + [("off", note) for note in (*measured.notes, *_idle(plan, condition, here))]


def _fitting(condition: Condition, measured: Measured, plan: Plan, here: Machine) -> str:
    if plan.real is None:
        return ""
    if condition.tier != "exact":
        return "; not held against D (fidelity tier)"
    found = fit(condition, plan.real.workers, here.cores, measured.gradient_s, measured.evaluate_s or 0.0)
    return f"; {found}" if found.ok else "; doesn't fit, see below"


def _idle(plan: Plan, condition: Condition, here: Machine) -> list[str]:
    """What was asked for and helps nothing here."""
    found = []
    if plan.real and plan.real.workers > condition.trainers:
        found.append(f"{plan.real.workers - condition.trainers} of {plan.real.workers} workers: there are {condition.trainers} trainers")
    if plan.real and plan.real.workers > here.cores:
        found.append(f"workers beyond {here.cores} cores wait for each other")
    if plan.sim and plan.sim.pool > here.cores:
        found.append(f"pool processes beyond {here.cores} cores wait for each other")
    most = max(sizes.concurrency for sizes in condition.possible_sizes)
    if most > condition.trainers:
        found.append(f"slots beyond {condition.trainers} trainers stay empty (C = {most})")
    if any(world.blobs == "none" for world in plan.worlds):
        found.append("replay: without blobs P0 can't be judged")
    return found


def _seconds(value: float) -> str:
    return f"{value * 1000:.3g} ms" if value < 1 else f"{value:.3g} s"
