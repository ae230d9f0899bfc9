"""Whether the synthetic runs speak as the real simulator does: the same fields, and the same verdicts.

What is asked of a pair over MQTT stands in `tests/pairs`.
"""

from pathlib import Path

import polars as pl
import pytest

from flame.config import World
from flame.launch.run import run
from flame.telemetry.columns import KINDS
from flame.telemetry.rundir import RunDir, RunPair
from parity.engine import Options, check
from parity.invariants.check import check_run
from parity.rungs import LADDER
from tests.parity.fixtures import asynchronous, condition, write_run


@pytest.fixture(scope="module", params=["sync", "async"])
def simulated(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    """A run of the real simulator on the toy task."""
    chosen = condition() if request.param == "sync" else asynchronous()
    return RunDir(run(chosen, World(kind="sim"), runs=tmp_path_factory.mktemp("runs")).path)


def _filled(frame: pl.DataFrame) -> set[str]:
    """The columns that have a value on some row."""
    return {column.name for column in frame if column.null_count() < column.len()}


MEASURED_ELSEWHERE = {"phases", "stamp_ns", "_stamp_ns"}
"""Columns that a synthetic run fills where the simulator may not, or the other way round: nothing judges by them."""


@pytest.mark.parametrize("kind", sorted(KINDS.keys() - {"peer", "intrusion", "fault", "resource", "lateness"}))
def test_synthetic_runs_have_the_fields_of_simulated_ones(kind: str, simulated: RunDir, tmp_path: Path) -> None:
    synthetic = write_run(tmp_path, simulated.condition, "sim")
    theirs, ours = (_filled(one.telemetry.frame(kind)) - MEASURED_ELSEWHERE for one in (simulated, synthetic))
    assert theirs == ours


def test_a_simulated_run_keeps_every_law(simulated: RunDir) -> None:
    unkept = {ruling.law.name: ruling.look.faults for ruling in check_run(simulated) if ruling.holds is not True}
    assert unkept == {"belief": [], "withheld": []}


@pytest.mark.usefixtures("real_replay")
def test_a_simulated_run_is_its_own_twin(simulated: RunDir) -> None:
    report = check(RunPair(simulated, simulated), LADDER, Options(force=True))
    verdicts = {result.rung.id: result.verdict for result in report.results if result.verdict not in ("PASS", "DIAG")}
    assert verdicts.pop("Tph", "SKIP") == "SKIP", "whether n suffices hangs on how the measured times cling together"
    nobody_away = {"A1", "A3", "A4", "A4dur", "A5", "A6", "A7", "A8", "C3", "C2w", "K11"}
    of_a_real_run = {"Lt", "Wd", "Tcl", "K2", "U6"}
    unscored, short = {"Sx", "Sd"}, {"K3b", "K4", "K3"}
    ungated = {"V5"} if simulated.condition.loop == "async" else set()
    told = [(result.rung.id, result.reason) for result in report.results]
    assert verdicts == dict.fromkeys(nobody_away | of_a_real_run | unscored | short | ungated, "SKIP"), told
    assert report.of("P0").finding.n > 100  # type: ignore[operator]


@pytest.mark.usefixtures("real_replay")
def test_away_over_a_modelled_network_keeps_its_rungs(tmp_path: Path) -> None:
    away = {"trace": "phone_2st", "time_scale": 6000.0, "abandon_s": 9000.0}
    chosen = asynchronous(availability=away, wan={"seconds": 0.5, "down_mbit": 0.01, "up_mbit": 0.01})
    far = RunDir(run(chosen, World(kind="sim"), runs=tmp_path).path)
    report = check(RunPair(far, far), LADDER, Options(force=True))
    assert far.telemetry.frame("withheld").height > 0
    assert [ruling.law.name for ruling in check_run(far) if ruling.holds is not True] == ["belief"]
    assert {name: report.of(name).verdict for name in ("A6", "C2w", "K6", "K10")} == dict.fromkeys(("A6", "C2w", "K6", "K10"), "PASS")
