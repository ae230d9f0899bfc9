"""Runs of one command, one after another: real and sim of each condition, then parity of the pair.

A bad end doesn't stop the rest; an interrupted run does. A closing table says how each one ended.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from flame.config.condition import Condition
from flame.config.world import World
from flame.launch.preflight.plan import Plan
from flame.launch.results import follow
from flame.launch.run import Run, run
from flame.launch.screen.consoles import table
from flame.launch.screen.progress import GOOD, progress, span

if TYPE_CHECKING:
    from parity.engine import Report

NUMBERS = ("cycles", "commits", "accuracy", "wall", "virtual", "sim_rate")
SPARE = ("commits", "cycles", "accuracy", "seed")
"""Columns that a narrow terminal does without, in this order."""


@dataclass(slots=True)
class Ended:
    """One run's end. run: None when it broke before it could say how; then `broke` does."""

    condition: Condition
    world: World
    run: Run | None = None
    broke: str = ""
    accuracy: float | None = None

    @property
    def verdict(self) -> str:
        """As the table has it."""
        return self.run.verdict if self.run else "CRASH"

    @property
    def well(self) -> bool:
        """Whether it ended as it should."""
        return self.verdict in GOOD


@dataclass(slots=True)
class Pair:
    """Both ends of one condition, and what parity says of them. why: nothing was compared, and why not."""

    ends: list[Ended]
    report: "Report | None" = None
    why: str = ""

    @property
    def well(self) -> bool:
        """Whether the runs ended well and, if they were compared, agree."""
        return all(end.well for end in self.ends) and (self.report.exit_code == 0 if self.report else not self.why)


def carry_out(plan: Plan, out: Console, err: Console, after: frozenset[str] = frozenset()) -> bool:
    """Run everything, print reports and the closing table to `out`, do what comes `after`. Whether all ended well."""
    pairs: list[Pair] = []
    for pair in _conduct(plan, err):
        pairs.append(pair)
        if len(pair.ends) == 2 and "parity" in after:
            _judge(pair, out)
    if pairs:
        out.print(closing_table(pairs, out))
    left = len(plan.resolved) * len(plan.worlds) - sum(len(pair.ends) for pair in pairs)
    if left:
        err.print(Text(f"  interrupted: {left} runs were not started", "yellow"))
    followed = follow.carry_out(after, [end.run.path for pair in pairs for end in pair.ends if end.run], out, err)
    return followed and not left and all(pair.well for pair in pairs)


def _conduct(plan: Plan, err: Console) -> Iterator[Pair]:
    for condition in plan.conditions:
        pair = Pair([])
        for world in plan.worlds:
            pair.ends.append(_one(plan, condition, world, err))
            if pair.ends[-1].verdict == "INTERRUPTED":
                yield pair
                return
        yield pair


def _one(plan: Plan, condition: Condition, world: World, err: Console) -> Ended:
    shown = progress(condition.stop, err)
    end = Ended(condition, world)
    try:
        end.run = run(condition, world, run_set=plan.run_set, runs=plan.runs, ui=shown)
    except Exception as error:  # whatever broke this run, the others are still wanted
        end.broke = f"{type(error).__name__}: {error}"
    finally:
        shown.close()
    if end.broke:
        err.print(Text("  CRASH ", "bold red").append(end.broke, "default"))
    end.accuracy = shown.state.accuracy
    return end


def _judge(pair: Pair, out: Console) -> None:
    """Compare the two runs, print the report, keep it as parity.json beside both. A checker that breaks is no reason to stop."""
    runs = [end.run for end in pair.ends if end.run is not None]
    if len(runs) < 2:
        pair.why = "not compared: a run is missing"
        return
    try:
        pair.report = _compared(runs[0].path, runs[1].path, out)
    except Exception as error:
        pair.why = f"not compared: {type(error).__name__}: {error}"
        out.print(Text(pair.why, "bold red"))


def _compared(one: Path, other: Path, out: Console) -> "Report":
    import orjson

    from flame.telemetry.rundir import RunDir
    from parity.engine import Options, check, pair_of
    from parity.reports.document import document
    from parity.reports.terminal import render
    from parity.rungs import LADDER

    report = check(pair_of(RunDir(one), RunDir(other)), LADDER, Options())
    out.print(render(report))
    for path in (one, other):
        (path / "parity.json").write_bytes(orjson.dumps(document([report]), option=orjson.OPT_INDENT_2))
    return report


def closing_table(pairs: list[Pair], console: Console) -> Table:
    """One row per run: verdict, wall, virtual time, sim_rate, and the scoreboard of its pair."""
    compared = any(pair.report or pair.why for pair in pairs)
    titles = ["baseline", "seed", "world", "verdict", *NUMBERS, *(["parity"] if compared else [])]
    rows: list[list[Text | str]] = []
    for pair in pairs:
        for end in pair.ends:
            score = _scoreboard(pair) if end is pair.ends[-1] else ""
            rows.append([*_cells(end), *([score] if compared else [])])
    return table(console, titles, rows, SPARE, NUMBERS)


def _cells(end: Ended) -> list[Text | str]:
    verdict = Text(end.verdict, "green" if end.well else "bold red")
    name: list[Text | str] = [end.condition.baseline, str(end.condition.seed), end.world.kind, verdict]
    if end.run is None:
        return [*name, *["-"] * 6]
    rate = f"{end.run.virtual_s / end.run.wall_s:.1f}" if end.world.kind == "sim" and end.run.wall_s else "-"
    accuracy = "-" if end.accuracy is None else f"{end.accuracy:.3f}"
    return [*name, str(end.run.cycles), str(end.run.commits), accuracy, span(end.run.wall_s), span(end.run.virtual_s), rate]


def _scoreboard(pair: Pair) -> Text:
    """`21 passed, 1 skipped`: whatever is not zero."""
    if pair.report is None:
        return Text(pair.why.partition("\n")[0], "bold red")
    from parity.reports.terminal import COUNTED, STYLES

    counts = [(pair.report.count(verdict), word, STYLES[verdict]) for verdict, word in COUNTED]
    return Text(", ").join(Text(f"{count} {word}", style) for count, word, style in counts if count)
