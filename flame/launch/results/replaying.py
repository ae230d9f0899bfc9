"""`flame replay`: a run's journals, fed to fresh machines, step by step or as a verdict per node."""

from collections.abc import Sequence
from pathlib import Path

from flame.config.errors import ConfigError, unknown
from flame.core.machine import Machine
from flame.core.time import clock_text
from flame.launch.screen import consoles
from flame.roles.aggregator import Aggregator
from flame.roles.inbox import RANKS
from flame.roles.stuck import stuck_table
from flame.runtime.books.journal import CorruptJournal, read
from flame.runtime.books.replay import Divergence, NodeReplay, Stepped, load_condition, replay, steps
from flame.telemetry.rundir import RunDir, RunDirError

WELL, BAD = 0, 1


def replay_run(run: Path, node: str | None, until: int | None, show: bool) -> int:
    """Replay, print to stdout, return the exit code: 1 when an effect differs, or nothing could be replayed."""
    try:
        RunDir(run)
    except RunDirError as error:
        raise ConfigError(str(error), "give one of `flame runs`") from None
    journals = {path: read(path)[0] for path in sorted((run / "journal").glob("*.jsonl"))}
    nodes = sorted({name for header in journals.values() for name in header["nodes"]})
    if node is not None and node not in nodes:
        raise unknown("node", node, nodes, f" in {run.name}")
    chosen = [path for path, header in journals.items() if node is None or node in header["nodes"]]
    if until is not None and chosen:
        _check(until, chosen, run.name)
    try:
        if not (show or until is not None):
            return _verdicts([each for each in replay(run) if node in (None, each.node)])
        return max([_steps(run, path, node, until, show) for path in chosen], default=BAD)
    except CorruptJournal as error:
        raise ConfigError(str(error), "the run can't be replayed from this journal; run it again") from None


def _check(until: int, journals: Sequence[Path], name: str) -> None:
    """Raises ConfigError for a step that no journal has."""
    last = max(map(_lines, journals)) - 2  # a header, and steps from 0 on
    if not 0 <= until <= last:
        raise ConfigError(f"`--until {until}`: the steps of `{name}` are 0 to {last}", "give one of them, or leave `--until` out")


def _lines(path: Path) -> int:
    with path.open("rb") as file:
        return sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(1 << 20), b""))


def _verdicts(found: list[NodeReplay]) -> int:
    for each in found:
        said = each.difference or each.skipped or "identical"
        consoles.out().print(f"{each.node:<12} {each.steps:>8} steps  {said}", markup=False, soft_wrap=True)
    return BAD if any(each.difference or each.skipped for each in found) else WELL


def _steps(run: Path, path: Path, node: str | None, until: int | None, show: bool) -> int:
    count, out, last = 0, consoles.out(), None
    try:
        for step in steps(load_condition(run), run, path):
            count += 1
            if node in (None, step.node):
                last = step
                if show:
                    out.print(_text(step), markup=False, soft_wrap=True)
            if until is not None and step.seq >= until:
                break  # before the next step is taken: the machines stand where they were asked to
    except Divergence as error:
        out.print(f"{path.name}: {error}", style="bold red", markup=False, soft_wrap=True)
        return BAD
    if show and until is not None and last is not None:
        out.print(_state(last.machine), markup=False, soft_wrap=True)
    out.print(f"{path.name}: {count} steps, identical", markup=False)
    return WELL


def _state(machine: Machine) -> str:
    """What a machine holds where the replay was told to stop."""
    if not isinstance(machine, Aggregator):
        return f"state: {machine.describe()}"
    inbox = machine.inbox
    least = inbox.least()
    waits = "" if least is None else f", and waits for {RANKS[least[1]]} {least[3]} of `{least[2] or 'itself'}`, due {clock_text(least[0])}"
    return f"state: {machine.describe()}\n  released up to {clock_text(inbox.frontier)}{waits}\n{stuck_table(machine)}"


def _text(step: Stepped) -> str:
    released = "".join(f"\n    released {key}" for key in step.released)
    return f"{step.seq:>6} {clock_text(step.now)} {step.node}: {_short(step.event)}{released}\n    now {step.state}"


def _short(event: object) -> str:
    text = str(event)
    return text if len(text) <= 300 else f"{text[:300]} ..."
