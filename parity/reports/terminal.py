"""The report for people: conditions of both runs, one line per stage, what isn't a pass, one closing line.

It must make sense without colour, so each letter is explained by the word that opens its line below:
✓ PASS, ✗ FAIL, ⊘ BLOCKED, - SKIP, · DIAG, ! ERROR. Text from telemetry is never read as markup.
"""

from collections.abc import Iterator, Sequence

from pydantic import BaseModel
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from flame.config import Condition
from flame.telemetry.rundir import RunDir
from parity.engine import Report, Result
from parity.evidence import Run
from parity.explainer.story import Story
from parity.floor import Floor
from parity.invariants.check import Ruling
from parity.rung import DIST, STAGES, VerdictName

LETTERS: dict[VerdictName, str] = {"PASS": "✓", "FAIL": "✗", "BLOCKED": "⊘", "SKIP": "-", "DIAG": "·", "ERROR": "!"}
STYLES: dict[VerdictName, str] = {
    "PASS": "green", "FAIL": "bold red", "BLOCKED": "yellow", "SKIP": "yellow", "DIAG": "cyan", "ERROR": "bold magenta",
}  # fmt: skip
TOLD: tuple[VerdictName, ...] = ("PASS", "DIAG", "SKIP", "BLOCKED", "ERROR", "FAIL")
"""The order of the lines under the stages: what is worst stands last, nearest to the prompt. A pass has one if it asks for it."""

COUNTED: tuple[tuple[VerdictName, str], ...] = (
    ("FAIL", "failed"), ("ERROR", "broke"), ("PASS", "passed"), ("BLOCKED", "blocked"), ("SKIP", "skipped"), ("DIAG", "diag"),
)  # fmt: skip

PLAIN_WIDTH = 160
"""Width where the output is no terminal: a log is not wrapped at 80."""


def console() -> Console:
    """Where reports go: stdout."""
    found = Console(highlight=False)
    return found if found.is_terminal else Console(highlight=False, width=PLAIN_WIDTH)


def show(console: Console, reports: Sequence[Report]) -> None:
    """Print each pair's report; of several pairs a table at the end."""
    for report in reports:
        console.print(render(report))
        console.print()
    if len(reports) > 1:
        console.print(_scoreboard(reports))


def render(report: Report) -> Group:
    """One pair's report."""
    parts: list[RenderableType] = [_title(report), *_head(report)]
    parts += [Text(f"! {note}", style="bold yellow") for note in report.notes]
    parts += [Text(), *_stages(report), Text()]
    parts += [line for verdict in TOLD for result in report.results if result.verdict == verdict for line in _told(result)]
    return Group(*parts, *(told_story(report.story) if report.story else ()), closing(report))


def closing(report: Report) -> Text:
    """`1 failed, 15 passed, 2 blocked, 1 skipped in 0.8 s   window: bins 0-2, 12 cycles`."""
    counts = [(report.count(verdict), word, STYLES[verdict]) for verdict, word in COUNTED]
    text = Text()
    for count, word, style in [entry for entry in counts if entry[0]]:
        text.append(", " if text else "").append(f"{count} {word}", style=style)
    warned = sum(result.warn for result in report.results)
    text.append(f" ({warned} of the failures only warn)" if warned else "")
    text.append(f" in {report.seconds:.1f} s   window: {report.window}")
    return text.append("   FORCED", style="bold yellow") if any(note.startswith("FORCED") for note in report.notes) else text


def _title(report: Report) -> Text:
    condition, pair = report.pair.condition, report.pair
    shape = "  ".join(shape_of(condition))
    text = Text("parity  ", style="bold").append(condition.baseline, style="bold cyan")
    return text.append(f"  seed {condition.seed}  {shape}  ").append(f"{pair.tier} tier", style="bold")


def shape_of(condition: Condition) -> tuple[str, ...]:
    """`N 10`, `K 3`, `C 5`, and the loop."""
    goals, slots = (_range(sorted(values)) for values in zip(*condition.possible_sizes, strict=True))
    return f"N {condition.trainers}", f"K {goals}", f"C {slots}", condition.loop


def _range(values: Sequence[int]) -> str:
    return str(values[0]) if values[0] == values[-1] else f"{values[0]}..{values[-1]}"


def _head(report: Report) -> Iterator[RenderableType]:
    """What was run; both runs side by side; what they share, and what they should share and don't."""
    real, sim = facts(report.pair.real), facts(report.pair.sim)
    table = Table.grid(padding=(0, 3))
    for style in ("dim", "", ""):
        table.add_column(style=style, overflow="fold")
    table.add_row("", Text("real", style="bold"), Text("sim", style="bold"))
    for name in real:
        if name not in SHARED:
            table.add_row(name, Text(real[name]), Text(sim[name]))
        elif real[name] != sim[name]:
            table.add_row(name, Text(real[name]), Text(f"≠ {sim[name]}", style="bold yellow"))
    yield _indented(briefly(report.pair.condition), 2)
    yield Padding(table, (0, 0, 0, 2), expand=False)
    same = ", ".join(f"{name} {real[name]}" for name in SHARED if real[name] == sim[name])
    yield Padding(_hanging(Text("same in both:", style="dim"), same or "nothing"), (0, 0, 0, 2), expand=False)
    if report.floor.runs or not report.pair.exact:
        yield Padding(_hanging(Text("floor:", style="dim"), _floor(report.floor)), (0, 0, 0, 2), expand=False)


def _floor(floor: Floor) -> str:
    if not floor.runs:
        return "none, so noise is known by chance alone (--floor RUN RUN ..., of flame replicate)"
    return f"{len(floor.runs)} replicates, {floor.pairs} ordered pairs: {', '.join(floor.runs)}"


SHARED = ("fingerprint", "condition", "device", "code", "libraries")
"""Facts that a pair should share. Another code or library is legitimate, and must be seen."""


def facts(run: Run) -> dict[str, str]:
    """What the head says of one run."""
    verdict, meta = run.verdict, run.frame("run_meta")
    return {
        "run": run.dir.label,
        "ended": f"{verdict.verdict}, {verdict.reason}" if verdict else "no verdict",
        "time": f"wall {verdict.wall_s:.2f} s, stamps {verdict.virtual_s:.2f} s" if verdict else "-",
        "telemetry": f"level {run.level}",
        "fingerprint": run.dir.run_fp,
        "condition": run.dir.condition_fp,
        "device": _all(meta["device"].to_list()),
        "code": _all(meta["code"].to_list()),
        "libraries": ", ".join(f"{name} {version}" for name, version in sorted(run.dir.libraries.items())),
    }


def briefly(condition: Condition) -> str:
    """The policies and rules of a condition in one line; what is at its default is left out of the brackets."""
    rules: list[tuple[str, BaseModel | str]] = [
        ("task", condition.task),
        ("select", condition.select),
        *(("commit", rule) for rule in condition.commit),
    ]
    rules += [("rate", condition.rate), ("staleness", condition.staleness), ("perturb", condition.perturb)]
    rules += [
        ("estimator", condition.estimator),
        ("opt", condition.server_opt),
        ("sizes", condition.sizes),
        ("down", condition.payload.down),
    ]
    rules += [("delays", condition.delays), ("order", condition.commit_order), ("stop", condition.stop)]
    return "  ".join(f"{name} {_brief(rule)}" for name, rule in rules)


def _brief(rule: BaseModel | str) -> str:
    if isinstance(rule, str):
        return rule
    plain = rule.model_dump(exclude_defaults=True, exclude={"type"})
    numbers = ", ".join(f"{key} {value}" for key, value in plain.items())
    name = getattr(rule, "type", "")
    return f"{name}({numbers})" if name and numbers else name or numbers


def _all(values: Sequence[str | None]) -> str:
    return ", ".join(sorted({value for value in values if value is not None})) or "-"


def _stages(report: Report) -> Iterator[Text]:
    """One line per stage that has a rung: ids and letters."""
    width = max(map(len, STAGES.values()))
    for stage, name in STAGES.items():
        results = [result for result in report.results if result.rung.stage == stage]
        if results:
            text = Text(f"  {stage} {name:{width}}")
            for result in results:
                text.append("   ").append(LETTERS[result.verdict], style=STYLES[result.verdict]).append(f" {result.rung.id:3}")
            text.rstrip()
            yield text


def _told(result: Result) -> Iterator[RenderableType]:
    """The lines of a rung that isn't simply a pass."""
    if result.verdict == "PASS" and not result.rung.shown:
        return
    text = Text(f"{result.verdict:7} ", style=STYLES[result.verdict])
    text.append(f"{result.rung.id:4}", style="bold")
    if result.verdict != "FAIL":
        yield _hanging(text, f"{result.reason or result.finding.reason}")
        yield from _detail(result) if result.verdict == "DIAG" and result.finding.ok is False else ()
        return
    blame = f"DOWNSTREAM of {', '.join(result.by)}" if result.by else "ROOT-CAUSE"
    yield (
        text.append(f"{result.rung.name}  {judged_by(result)}  ")
        .append(blame, style="dim" if result.by else "bold red")
        .append("  (only warns)" if result.warn else "")
    )
    yield _indented(result.reason, 2)
    yield from _detail(result)


def judged_by(result: Result) -> str:
    """The tier that judged, and whether by its statistic."""
    tier = result.tier.lower()
    return f"{tier}, by its statistic" if result.tier == DIST and result.finding.measures else tier


def _detail(result: Result) -> Iterator[RenderableType]:
    for line in result.finding.detail:
        yield _indented(line, 2 if line.startswith("hint: ") else 3, "dim" if result.by else "")


def _indented(line: str, columns: int, style: str = "") -> Padding:
    return Padding(Text(line, style=style), (0, 0, 0, columns), expand=False)


def _hanging(label: Text, reason: str) -> Table:
    """A label, and beside it a reason that wraps under itself."""
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row(label, Text(reason))
    return table


def told_story(story: Story) -> Iterator[RenderableType]:
    """Where the runs part, and why."""
    first, *rest = story.lines()
    yield Text()
    yield _hanging(Text("STORY  ", style="bold"), first)
    for line in rest:
        yield _indented(line, 2 if line.startswith("hint: ") else 3)
    yield Text()


def _scoreboard(reports: Sequence[Report]) -> Table:
    """Rungs down, pairs across."""
    table = Table(title="scoreboard", title_justify="left", title_style="bold", box=None, padding=(0, 2, 0, 0))
    table.add_column("rung", style="bold", no_wrap=True)
    for report in reports:
        condition = report.pair.condition
        table.add_column(f"{condition.baseline}\nn{condition.trainers} s{condition.seed}", justify="center")
    for results in zip(*(report.results for report in reports), strict=True):
        cells = [Text(LETTERS[result.verdict], style=STYLES[result.verdict]) for result in results]
        table.add_row(f"{results[0].rung.id} {results[0].rung.name}", *cells)
    table.add_section()
    for verdict, word in COUNTED:
        counts = [report.count(verdict) for report in reports]
        if any(counts):
            table.add_row(Text(word, style=STYLES[verdict]), *(str(count) for count in counts))
    return table


def show_invariants(console: Console, run: RunDir, rulings: Sequence[Ruling], used: dict[str, list[str]]) -> None:
    """Print the laws of one run, and what the run really used."""
    console.print(Text("validate  ", style="bold").append(run.label, style="bold cyan"))
    grid = Table.grid(padding=(0, 2))
    for name, values in used.items():
        grid.add_row(Text(f"  {name}", style="dim"), Text(", ".join(values) or "-"))
    console.print(grid)
    console.print()
    for ruling in rulings:
        verdict = _held(ruling)
        looked = ruling.broke or (f"{ruling.look.n} looked at" if ruling.look.n else "nothing to look at")
        line = Text(f"{verdict:7} ", style=STYLES[verdict]).append(f"{ruling.law.name:12} ", style="bold")
        console.print(line.append(f"{ruling.law.says}  ").append(f"({looked})", style="dim"))
        for fault in ruling.look.faults[:5]:
            console.print(_indented(fault, 3))
        if len(ruling.look.faults) > 5:
            console.print(_indented(f"and {len(ruling.look.faults) - 5} more", 3))
    failed, held, broke = (sum(_held(ruling) == verdict for ruling in rulings) for verdict in ("FAIL", "PASS", "ERROR"))
    unseen = len(rulings) - failed - held - broke
    console.print(Text(f"{failed} failed, {held} held, {unseen} had nothing to look at" + (f", {broke} broke" if broke else "")))
    console.print()


def _held(ruling: Ruling) -> VerdictName:
    if ruling.broke:
        return "ERROR"
    return "SKIP" if ruling.holds is None else "PASS" if ruling.holds else "FAIL"
