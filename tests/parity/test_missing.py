"""Deleting any one field that a rung needs gives a SKIP that names it, or a failure of TC1 where the run must have it. Never a crash."""

from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from flame.core.progress import Progress
from flame.telemetry.columns import columns
from flame.telemetry.reader import TelemetryError
from flame.telemetry.rundir import RunPair
from parity.engine import Report
from parity.evidence import CLOCK, SIDES
from parity.rungs import LADDER
from parity.rungs.tc1_field_coverage import REQUIRED
from tests.parity.edits import Edit
from tests.parity.fixtures import away, guided, write_pair


def own_clock(side: str, need: str) -> str:
    """The field that a need asks of that side."""
    return ("agg_round.wall_s" if side == "real" else "agg_round.vclock_ns") if need == CLOCK else need


NEEDS = sorted(
    {
        (side, own_clock(side, need.rpartition(":")[2]))
        for rung in LADDER.rungs
        for need in rung.needs
        for side in SIDES
        if need.partition(":")[0] in (side, need)
    }
)
GUIDED = "selection.scores"
"""What only a policy that scores writes; the good pair's doesn't."""
READ = [(kind, column.name) for kind in ("withheld", "abandoned") for column in columns(kind) if column.path[0] == "record"]
"""What rungs look at beyond their needs, of those who are away."""
VERDICTS = sorted({need for need in NEEDS if need[1].startswith("verdict.")})
FIELDS = sorted({need.field for need in REQUIRED} - {GUIDED})
REAL_ONLY = ("agg_round.lag_s", "agg_round.phases", "lateness.id", "lateness.late_s")
ORDINALS = set(Progress.__dataclass_fields__)


def _forget(edit: Edit, field: str) -> None:
    kind, _, name = field.partition(".")
    if kind == "verdict":
        edit.verdict(**{name: None})
        return
    path = next(column.path for column in columns(kind) if column.name == name)
    edit.each(kind, lambda record: (record["at"] if "at" in path else record).pop(path[-1], None))


@pytest.mark.parametrize(("side", "field"), [need for need in NEEDS if not need[1].startswith("verdict.") and need[1] != GUIDED])
def test_a_need_that_was_deleted_is_named(side: str, field: str, good: RunPair, judge: Callable[..., Report]) -> None:
    _forget(Edit(getattr(good, side)), field)
    report = judge(good)
    assert report.count("ERROR") == 0, [result.reason for result in report.results if result.verdict == "ERROR"]
    assert report.exit_code != 0
    for result in report.results:
        needed = {f"{side}:{field}", field} & {own_clock(side, need) for need in result.rung.needs}
        if needed and result.verdict != "BLOCKED":
            assert result.verdict == "SKIP"
            assert f"{side} has no `{field}`" in result.reason


@pytest.mark.parametrize(("side", "field"), VERDICTS)
def test_a_missing_field_of_the_verdict_is_named_or_refused(side: str, field: str, good: RunPair, judge: Callable[..., Report]) -> None:
    run, name = getattr(good, side), field.partition(".")[2]
    stored = orjson.loads((run.path / "verdict.json").read_bytes())
    stored.pop(name)
    (run.path / "verdict.json").write_bytes(orjson.dumps(stored))
    if name in ("verdict", "reason"):
        with pytest.raises(TelemetryError, match=f"verdict.json.*{name}"):
            judge(good)
        return
    report = judge(good)
    assert report.count("ERROR") == 0
    for result in report.results:
        if {f"{side}:{field}", field} & set(result.rung.needs):
            assert result.verdict != "PASS", (result.rung.id, result.reason)


@pytest.mark.parametrize(("kind", "name"), READ)
def test_what_is_read_of_absences_may_be_missing_and_breaks_no_rung(
    kind: str, name: str, tmp_path: Path, judge: Callable[..., Report]
) -> None:
    pair = write_pair(tmp_path, away(12))
    for run in (pair.real, pair.sim):
        _forget(Edit(run), f"{kind}.{name}")
    report = judge(pair)
    assert report.count("ERROR") == 0, [(result.rung.id, result.reason) for result in report.results if result.verdict == "ERROR"]


@pytest.mark.parametrize("field", FIELDS)
def test_a_field_that_the_run_must_have_fails_tc1(field: str, good: RunPair, judge: Callable[..., Report]) -> None:
    side = good.real if field in REAL_ONLY else good.sim
    _forget(Edit(side), field)
    report = judge(good)
    assert report.count("ERROR") == 0, [result.reason for result in report.results if result.verdict == "ERROR"]
    assert report.of("TC1").verdict == "FAIL"
    assert f"`{field}` is required" in " ".join([report.of("TC1").reason, *report.of("TC1").finding.detail])


def test_scores_that_a_guided_selection_must_have_fail_tc1(tmp_path: Path, judge: Callable[..., Report]) -> None:
    pair = write_pair(tmp_path, guided())
    _forget(Edit(pair.real), GUIDED)
    report = judge(pair)
    assert "`selection.scores` is required" in report.of("TC1").reason
    assert report.of("Sd").reason == "real has no `selection.scores`"
