"""`flame sweep`: every simulation of a sweep that isn't there yet, several at once, and one table of all.

What is there is known by its fingerprint: a simulation in the folder of runs that ended by its own rules is not run
again, however it ended; one that was cut short goes on from its checkpoint. So a sweep may be interrupted as often as one
likes. What somebody else is running, another sweep say, is left to them.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean

from rich.console import Console

from flame.analysis import curve
from flame.config.experiments import load
from flame.launch.preflight.issue import refused
from flame.launch.preflight.table import gate
from flame.launch.screen.consoles import table
from flame.launch.sweeping.arms import Arm, find
from flame.launch.sweeping.crew import Crew
from flame.launch.sweeping.gate import Findings, examine
from flame.telemetry.reader import TelemetryError
from flame.telemetry.rundir import RunDir

WELL, BAD, REFUSED = 0, 1, 2


def sweep(
    name: str, experiments: Path | None, runs: Path, jobs: int | None, out: Console, err: Console, *,
    dry_run: bool = False, force: bool = False,
) -> int:  # fmt: skip
    """Run what is missing, print the table. The exit code: 1 when something is missing or ended badly. Raises ConfigError."""
    arms = [Arm(point, each) for point, each in load(experiments).swept(name)]
    find(arms, runs)
    waiting = [arm for arm in arms if arm.free]
    err.print(f"{len(arms)} simulations: {_counted(arms)}")
    found = _examined(waiting, runs, err, force) if waiting else None
    stopped = found is not None and refused(found.issues, force)
    if stopped and not dry_run:
        return REFUSED
    if found is not None and not dry_run:
        Crew(runs, err).carry_out(waiting, jobs or found.room)
        find(arms, runs)
    titles = ("point", "baseline", "n", "verdicts", "commits", "accuracy", "sustained", "worst")
    out.print(table(out, titles, list(rows(arms)), ("commits", "verdicts"), titles[4:], folded="point"))
    if dry_run:
        return REFUSED if stopped else WELL
    return WELL if all(arm.well for arm in arms) else BAD


def _counted(arms: Sequence[Arm]) -> str:
    """`8 are there, 0 go on, 2 begin`, and how many others are at."""
    done, free = sum(arm.done is not None for arm in arms), sum(arm.free for arm in arms)
    begun, elsewhere = sum(arm.free and arm.begun is not None for arm in arms), len(arms) - done - free
    others = f", {elsewhere} {'is' if elsewhere == 1 else 'are'} being run by somebody else" if elsewhere else ""
    return f"{done} are there, {begun} go on, {free - begun} begin{others}"


def _examined(arms: Sequence[Arm], runs: Path, err: Console, force: bool) -> Findings:
    with err.status("looking at data, model and machine", spinner="dots"):
        found = examine(arms, runs)
    if found.issues:
        err.print(gate(found.issues, force))
    return found


def rows(arms: Sequence[Arm]) -> Iterator[list[str]]:
    """One row for each point and baseline, over its seeds; `worst`: sustained accuracy of the worst seed."""
    groups: dict[tuple[str, str], list[Arm]] = defaultdict(list)
    for arm in arms:
        groups[arm.place, arm.condition.baseline].append(arm)
    for (point, baseline), group in groups.items():
        ended = [arm.done for arm in group if arm.done is not None]
        verdicts = Counter(arm.last for arm in group if arm.last is not None)
        commits = [run.verdict.commits for run in ended if run.verdict]
        scores = [each for run in ended if (each := scored(run)) is not None]
        last, sustained = ([score[which] for score in scores] for which in (0, 1))
        yield [
            point, baseline, f"{len(ended)}/{len(group)}", " ".join(f"{count} {name}" for name, count in verdicts.items()) or "-",
            f"{fmean(commits):.0f}" if commits else "-", _mean(last), _mean(sustained), f"{min(sustained):.3f}" if sustained else "-",
        ]  # fmt: skip


def scored(run: RunDir) -> tuple[float, float] | None:
    """The last accuracy of a run, and the sustained one; None where either is absent, or its telemetry can't be read."""
    try:
        evaluations = run.telemetry.frame("agg_eval").sort("_seq")
    except TelemetryError:
        return None
    last, lasting = curve.last(evaluations), curve.sustained(evaluations)
    return None if last is None or lasting is None else (last, lasting)


def _mean(values: Sequence[float]) -> str:
    return f"{fmean(values):.3f}" if values else "-"
