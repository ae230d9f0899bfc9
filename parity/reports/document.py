"""The report for machines: the JSON of `flame parity --json`, and `parity.json` beside the HTML page. One entry a pair.

Its types stand here, and `docs/parity.schema.json` is made from them. Absent is null, never 0.
"""

from collections.abc import Sequence
from typing import Any, Literal, cast

import orjson
from pydantic import ConfigDict, TypeAdapter, with_config
from typing_extensions import TypedDict

from flame.telemetry.records import Level
from parity.engine import Report, Result
from parity.evidence import Run, Window
from parity.rung import Domain, Role, Tier, VerdictName

SUMMARY: tuple[VerdictName, ...] = ("PASS", "FAIL", "SKIP", "BLOCKED", "DIAG", "ERROR")
CLOSED = ConfigDict(extra="forbid", strict=True)


@with_config(CLOSED)
class WindowEntry(TypedDict):
    """What was compared. bin_cycles: closes of the common bins, a side. last: (round, data_id) of the last common bin."""

    cycles: int
    bins: int
    bin_cycles: dict[Literal["real", "sim"], int]
    last: tuple[int, int] | None
    cut: str | None


@with_config(CLOSED)
class EndEntry(TypedDict):
    """How a run ended."""

    verdict: str
    reason: str
    cycles: int
    commits: int
    accepts: int | None
    wall_s: float
    virtual_s: float
    sim_rate: float | None


@with_config(CLOSED)
class RunEntry(TypedDict):
    """One side. name: of its directory. ended: null while it has no verdict."""

    name: str
    run: str
    run_fp: str
    condition_fp: str
    level: Level
    libraries: dict[str, str]
    ended: EndEntry | None


@with_config(CLOSED)
class RungEntry(TypedDict):
    """One rung. by: the failed upstreams of a failure. warn: a failure that isn't enforced. floor: what replicates differ by."""

    id: str
    name: str
    stage: int
    tier: Tier
    domain: Domain
    verdict: VerdictName
    role: Role | None
    by: list[str]
    effect: float | None
    tol: float | None
    n: int | None
    reason: str
    detail: list[str]
    warn: bool
    floor: float | None


Summary = TypedDict("Summary", {"pass": int, "fail": int, "skip": int, "blocked": int, "diag": int, "error": int})


@with_config(CLOSED)
class FloorEntry(TypedDict):
    """Of which replicates. pairs: how many pairs of them."""

    runs: list[str]
    pairs: int


@with_config(CLOSED)
class PairEntry(TypedDict):
    """One pair. notes: what a reader must know before believing any of it. exit: what this pair alone would exit with.

    story: null unless the released sequences part; its fields are those of `parity.explainer.story.Story`.
    """

    baseline: str
    seed: int
    tier: Literal["exact", "fidelity"]
    window: WindowEntry
    real: RunEntry
    sim: RunEntry
    summary: Summary
    notes: list[str]
    floor: FloorEntry | None
    exit: int
    rungs: list[RungEntry]
    story: dict[str, Any] | None


@with_config(CLOSED)
class Document(TypedDict):
    """All pairs that were compared."""

    pairs: list[PairEntry]


def document(reports: Sequence[Report]) -> Document:
    """All pairs, as plain values."""
    return {"pairs": [_pair(report) for report in reports]}


def text(reports: Sequence[Report]) -> bytes:
    """The document as JSON, a line at its end."""
    return orjson.dumps(document(reports), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def schema() -> str:
    """The JSON Schema of the document."""
    made = TypeAdapter(Document).json_schema(ref_template="#/$defs/{model}")
    made = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "flame parity document", **made}
    return orjson.dumps(made, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()


def _pair(report: Report) -> PairEntry:
    condition = report.pair.condition
    return {
        "baseline": condition.baseline,
        "seed": condition.seed,
        "tier": report.pair.tier,
        "window": _window(report.window),
        "real": _run(report.pair.real),
        "sim": _run(report.pair.sim),
        "summary": cast(Summary, {verdict.lower(): report.count(verdict) for verdict in SUMMARY}),
        "notes": report.notes,
        "floor": {"runs": list(report.floor.runs), "pairs": report.floor.pairs} if report.floor.runs else None,
        "exit": report.exit_code,
        "rungs": [_rung(result) for result in report.results],
        "story": report.story.plain() if report.story else None,
    }


def _window(window: Window) -> WindowEntry:
    return {"cycles": window.cycles, "bins": window.bins, "bin_cycles": window.bin_cycles, "last": window.last, "cut": window.cut}


def _run(run: Run) -> RunEntry:
    return {
        "name": run.dir.label, "run": run.dir.run, "run_fp": run.dir.run_fp, "condition_fp": run.dir.condition_fp,
        "level": run.dir.world.level, "libraries": run.dir.libraries, "ended": _end(run),
    }  # fmt: skip


def _end(run: Run) -> EndEntry | None:
    verdict = run.verdict
    if verdict is None:
        return None
    return {
        "verdict": verdict.verdict, "reason": verdict.reason, "cycles": verdict.cycles, "commits": verdict.commits,
        "accepts": verdict.accepts, "wall_s": verdict.wall_s, "virtual_s": verdict.virtual_s, "sim_rate": verdict.sim_rate,
    }  # fmt: skip


def _rung(result: Result) -> RungEntry:
    rung, finding = result.rung, result.finding
    return {
        "id": rung.id, "name": rung.name, "stage": rung.stage, "tier": result.tier, "domain": rung.domain,
        "verdict": result.verdict, "role": result.role, "by": list(result.by), "effect": finding.effect, "tol": finding.tol,
        "n": finding.n, "reason": result.reason, "detail": list(finding.detail), "warn": result.warn, "floor": result.floor,
    }  # fmt: skip
