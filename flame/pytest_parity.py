"""A pytest plugin: a condition is run in both worlds, and the test fails where the ladder does.

    def test_my_selector_keeps_parity(parity_ladder):
        report = parity_ladder({"task": "toy", "select": "mine", "stop": {"cycles": 12}})

It is found by pytest where flame is installed; else `-p flame.pytest_parity` loads it. `--parity-runs DIR` keeps the
runs, which are otherwise in the test's temporary folder. Nothing of flame is imported before a test asks for it.
"""

from collections.abc import Callable, Mapping
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from flame.config import Condition
    from parity.engine import Report

WIDTH = 140
"""Columns of the report of a failed test."""

Ladder = Callable[..., "Report"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """The plugin's option."""
    group = parser.getgroup("flame", "parity of real and simulated runs")
    group.addoption("--parity-runs", type=Path, metavar="DIR", help="keep the runs of `parity_ladder` in this folder")


@pytest.fixture
def parity_ladder(request: pytest.FixtureRequest, tmp_path: Path) -> Ladder:
    """Call it with a condition: it runs both worlds, asserts the ladder, and returns the report.

    real, sim: how the two are carried out (fields of World). Any other keyword is one of the ladder's options (`lenient`, ...).
    """
    runs: Path = request.config.getoption("--parity-runs") or tmp_path / "runs"

    def ladder(
        condition: "Condition | Mapping[str, Any]",
        *,
        real: Mapping[str, Any] | None = None,
        sim: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> "Report":
        report = _judged(condition, {"real": real or {}, "sim": sim or {}}, runs, options)
        if report.exit_code:
            pytest.fail(_text(report), pytrace=False)
        return report

    return ladder


def _judged(
    condition: "Condition | Mapping[str, Any]", worlds: Mapping[str, Mapping[str, Any]], runs: Path, options: Mapping[str, Any]
) -> "Report":
    from flame.config import Condition, World
    from flame.launch.run import run
    from flame.telemetry.rundir import RunDir, RunPair
    from parity.engine import Options, check
    from parity.rungs import LADDER

    chosen = condition if isinstance(condition, Condition) else Condition.model_validate(condition)
    real, sim = (
        RunDir(run(chosen, World.model_validate({"kind": kind, **carrying}), run_set="pytest", runs=runs).path)
        for kind, carrying in worlds.items()
    )
    return check(RunPair(real, sim), LADDER, Options(**options))


def _text(report: "Report") -> str:
    from rich.console import Console

    from parity.reports.terminal import show

    out = StringIO()
    show(Console(file=out, width=WIDTH, highlight=False), [report])
    return out.getvalue()
