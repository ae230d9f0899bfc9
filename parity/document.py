"""The report for machines: the JSON of `flame parity --json`, one entry a pair.

{"pairs": [{"baseline", "seed", "tier", "window", "real", "sim", "summary", "notes", "floor", "rungs": [...], "story"}]}

`story` is null unless the released sequences part; its fields are those of `parity.story.Story`.
"""

from collections.abc import Sequence
from typing import Any

from parity.engine import Report, Result
from parity.evidence import Run, Window
from parity.rung import VerdictName

SUMMARY: tuple[VerdictName, ...] = ("PASS", "FAIL", "SKIP", "BLOCKED", "DIAG", "ERROR")


def document(reports: Sequence[Report]) -> dict[str, Any]:
    """All pairs, as plain values."""
    return {"pairs": [_pair(report) for report in reports]}


def _pair(report: Report) -> dict[str, Any]:
    condition = report.pair.condition
    return {
        "baseline": condition.baseline,
        "seed": condition.seed,
        "tier": report.pair.tier,
        "window": _window(report.window),
        "real": _run(report.pair.real),
        "sim": _run(report.pair.sim),
        "summary": {verdict.lower(): report.count(verdict) for verdict in SUMMARY},
        "notes": report.notes,
        "floor": {"runs": list(report.floor.runs), "pairs": report.floor.pairs} if report.floor.runs else None,
        "exit": report.exit_code,
        "rungs": [_rung(result) for result in report.results],
        "story": report.story.plain() if report.story else None,
    }


def _window(window: Window) -> dict[str, Any]:
    return {"cycles": window.cycles, "bins": window.bins, "bin_cycles": window.bin_cycles, "last": window.last, "cut": window.cut}


def _run(run: Run) -> dict[str, Any]:
    verdict = run.verdict
    names = ("verdict", "reason", "cycles", "commits", "accepts", "wall_s", "virtual_s", "sim_rate")
    return {
        "name": run.dir.label, "run": run.dir.run, "run_fp": run.dir.run_fp, "condition_fp": run.dir.condition_fp,
        "level": run.level, "libraries": run.dir.libraries,
        "ended": {name: getattr(verdict, name) for name in names} if verdict else None,
    }  # fmt: skip


def _rung(result: Result) -> dict[str, Any]:
    rung, finding = result.rung, result.finding
    return {
        "id": rung.id, "name": rung.name, "stage": rung.stage, "tier": result.tier, "domain": rung.domain,
        "verdict": result.verdict, "role": result.role, "by": list(result.by), "effect": finding.effect, "tol": finding.tol,
        "n": finding.n, "reason": result.reason, "detail": list(finding.detail), "warn": result.warn, "floor": result.floor,
    }  # fmt: skip
