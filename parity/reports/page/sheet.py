"""A report as plain values, in the order in which they are read. The template decides nothing but the layout."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from markupsafe import Markup

from parity.derived.inflight import timeline_of
from parity.engine import Report, Result
from parity.evidence import Pair
from parity.exhibits import Timelines
from parity.reports.docs import sections
from parity.reports.page.flights import flights, span, whole
from parity.reports.page.pictures import picture_of
from parity.reports.terminal import COUNTED, LETTERS, SHARED, briefly, facts, judged_by, shape_of
from parity.rung import STAGES, Measure, VerdictName

LANES, WIDTH, TALL = 40, 1080.0, 16.0
"""The big timeline: trainers at most, its width, the height of a lane."""
EXPLAINED = ("What it checks", "Why", "Tolerance", "Known limits")


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing of both runs. wrong: they should agree on it and don't."""

    name: str
    real: str
    sim: str
    wrong: bool


@dataclass(frozen=True, slots=True)
class Row:
    """One rung. blame: who is to blame for a failure; open: unfolded from the start."""

    id: str
    anchor: str
    name: str
    verdict: VerdictName
    letter: str
    judged: str
    blame: str
    reason: str
    numbers: tuple[tuple[str, str], ...]
    measures: tuple[Measure, ...]
    detail: tuple[str, ...]
    explained: tuple[tuple[str, str], ...]
    picture: Markup | None

    @property
    def open(self) -> bool:
        """A failure shows its evidence."""
        return self.verdict in ("FAIL", "ERROR")


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of the ladder."""

    number: int
    name: str
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Timeline:
    """The drawing of who was in flight when. note: what of it is not drawn."""

    picture: Markup
    note: str


@dataclass(frozen=True, slots=True)
class Sheet:
    """One pair."""

    key: str
    baseline: str
    shape: tuple[str, ...]
    tier: str
    brief: tuple[str, ...]
    window: str
    seconds: float
    good: bool
    counts: tuple[tuple[VerdictName, int, str], ...]
    notes: tuple[str, ...]
    facts: tuple[Fact, ...]
    fields: tuple[Fact, ...]
    story: tuple[str, ...]
    stages: tuple[Stage, ...]
    timeline: Timeline | None

    @property
    def differing(self) -> tuple[Fact, ...]:
        """The fields of the two conditions that differ."""
        return tuple(field for field in self.fields if field.wrong)


def sheet_of(report: Report, key: str) -> Sheet:
    """The report of one pair. key: begins the anchors of its rungs, unique on the page."""
    condition, stages = report.pair.condition, (_stage(report, number, key) for number in STAGES)
    counts = tuple((verdict, report.count(verdict), word) for verdict, word in COUNTED if report.count(verdict))
    return Sheet(
        key, condition.baseline, (f"seed {condition.seed}", *shape_of(condition)), report.pair.tier,
        tuple(briefly(condition).split("  ")), str(report.window),
        report.seconds, report.exit_code == 0, counts, tuple(report.notes), _facts(report.pair), tuple(_fields(report.pair)),
        story_of(report), tuple(stage for stage in stages if stage.rows), _timeline(report.pair),
    )  # fmt: skip


def scoreboard(sheets: Sequence[Sheet]) -> list[tuple[str, list[Row]]]:
    """Rungs down, pairs across; nothing for a pair alone."""
    columns = [[row for stage in sheet.stages for row in stage.rows] for sheet in sheets]
    lines = [list(rows) for rows in zip(*columns, strict=True)] if len(sheets) > 1 else []
    return [(f"{rows[0].id} {rows[0].name}", rows) for rows in lines]


def story_of(report: Report) -> tuple[str, ...]:
    """What the explainer tells of the report's first difference, line by line; nothing where it tells nothing."""
    return tuple(report.story.lines()) if report.story else ()


def _facts(pair: Pair) -> tuple[Fact, ...]:
    real, sim = facts(pair.real), facts(pair.sim)
    return tuple(Fact(name, real[name], sim[name], name in SHARED and real[name] != sim[name]) for name in real)


def _fields(pair: Pair) -> Iterator[Fact]:
    """The fields of both conditions."""
    real, sim = (dict(_flat(run.condition.model_dump(mode="json"))) for run in pair.runs)
    names = list(real) + [name for name in sim if name not in real]
    yield from (Fact(name, real.get(name, "-"), sim.get(name, "-"), real.get(name) != sim.get(name)) for name in names)


def _flat(plain: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    """`stop.cycles` -> `24`."""
    for name, value in plain.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", value if isinstance(value, str) else orjson.dumps(value).decode()


def _stage(report: Report, number: int, key: str) -> Stage:
    return Stage(number, STAGES[number], tuple(_row(result, key) for result in report.results if result.rung.stage == number))


def _row(result: Result, key: str) -> Row:
    rung, finding = result.rung, result.finding
    blame = {"ROOT-CAUSE": "root cause", "DOWNSTREAM": f"downstream of {', '.join(result.by)}", None: ""}[result.role]
    told = {"effect": finding.effect, "tolerance": finding.tol, "n": finding.n}
    numbers = tuple((name, f"{value:.6g}") for name, value in told.items() if value is not None)
    texts = sections(rung)
    explained = ("", texts[""]), *((name, texts[name]) for name in EXPLAINED)
    return Row(
        rung.id, f"{key}-{rung.id}", rung.name, result.verdict, LETTERS[result.verdict], f"{judged_by(result)}, {rung.domain.lower()}",
        blame + (", only warns" if result.warn else ""), result.reason or finding.reason, numbers, finding.measures, finding.detail,
        explained, picture_of(result),
    )  # fmt: skip


def _timeline(pair: Pair) -> Timeline | None:
    """Both runs on one axis."""
    lanes = Timelines({run.side: run.derived(timeline_of) for run in pair.runs})
    drawn = flights(lanes, WIDTH, most_lanes=LANES, tall=TALL)
    if drawn is None:
        return None
    trainers, (begin, end) = len(pair.condition.nodes), span(lanes)
    left_out = [f"{LANES} of {trainers} trainers"] if trainers > LANES else []
    left_out += [f"{begin / 1e9:.2f} to {end / 1e9:.2f} s of {whole(lanes) / 1e9:.2f} s"] if end - begin < whole(lanes) else []
    return Timeline(drawn, f"drawn: {', '.join(left_out)}" if left_out else "")
