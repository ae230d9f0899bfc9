"""The replicate floor: what it lifts, what it never does, and that it is what the replicates really show."""

from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from flame.telemetry.rundir import RunDir, RunPair
from parity.cli import main
from parity.engine import Options, Report, check
from parity.floor import OWN, Floor
from parity.ladder import Ladder
from parity.replicates import FloorError, floors
from parity.rung import DIST, LOGICAL, PHYSICAL, Finding, Measure, Rung, failed, measured, passed
from parity.rungs import LADDER
from tests.parity.fixtures import condition, fidelity, write_pair, write_run
from tests.parity.test_engine import made

FAR = Measure("KS", 0.3, 0.2, 50, 0.1, 1e-6, 1e-6, 60)
NEAR = Measure("KS", 0.1, 0.2, 50, 0.1, 0.5, 1e-6, 60)


def statistic(finding: Finding, id: str = "A") -> Rung:
    return made(id, finding, tier=DIST, domain=PHYSICAL)


def held(pair: RunPair, rung: Rung, *effects: float, name: str = "KS") -> Report:
    """The report of that rung alone, against replicates that showed these effects."""
    return check(pair, Ladder([rung]), Options(), Floor(("r1", "r2"), {rung.id: {name: effects}} if effects else {}))


@pytest.mark.parametrize(
    ("measure", "effects", "verdict", "said"),
    [
        (FAR, (), "FAIL", "KS 0.300 > 0.20 (n=50, critical 0.100 at 0.01)"),
        (FAR, (0.1, 0.29), "FAIL", "critical 0.100 at 0.01, floor 0.290"),
        (FAR, (0.1, 0.3), "SKIP", "replicates are 0.300 apart"),
        (NEAR, (), "PASS", "KS 0.100 <= 0.20"),
        (NEAR, (0.2, 0.1), "PASS", "floor 0.200"),
        (NEAR, (0.21, 0.1), "SKIP", "replicates are 0.210 apart: no shift of 0.20 can be told"),
    ],
)
def test_a_measure_is_held_against_the_floor(
    good: RunPair, measure: Measure, effects: tuple[float, ...], verdict: str, said: str
) -> None:  # fmt: skip
    result = held(good, statistic(measured(measure)), *effects).of("A")
    assert (result.verdict, said in result.reason) == (verdict, True), result.reason
    assert result.floor == max(effects, default=None)


@pytest.mark.parametrize(
    ("finding", "effects", "verdict", "floor"),
    [
        (failed("far", effect=0.3, tol=0.2), (0.1, 0.25), "FAIL", 0.25),
        (failed("far", effect=0.3, tol=0.2), (0.1, 0.35), "SKIP", 0.35),
        (failed("few agree", effect=0.3, tol=0.7), (0.9, 0.5), "FAIL", 0.5),
        (failed("few agree", effect=0.3, tol=0.7), (0.9, 0.2), "SKIP", 0.2),
        (failed("few agree", effect=0.3, tol=0.7), (1.0, 1.0), "FAIL", 1.0),
        (passed("most agree", effect=0.8, tol=0.7), (0.9, 0.75), "PASS", 0.75),
        (passed("most agree", effect=0.8, tol=0.7), (0.9, 0.6), "SKIP", 0.6),
        (passed("near", effect=0.1, tol=0.2), (0.1, 0.3), "SKIP", 0.3),
        (failed("a law", effect=0.3, tol=0.0), (0.9, 0.9), "FAIL", None),
    ],
)
def test_a_single_number_is_held_against_the_worst_on_its_own_side(
    good: RunPair, finding: Finding, effects: tuple[float, ...], verdict: str, floor: float | None
) -> None:  # fmt: skip
    result = held(good, statistic(finding), *effects, name=OWN).of("A")
    assert (result.verdict, result.floor) == (verdict, floor)


def test_equality_of_the_exact_tier_knows_no_floor(good: RunPair) -> None:
    logical = made("A", failed("differs", effect=0.3, tol=0.2), tier=DIST, domain=LOGICAL)
    assert held(good, logical, 0.9, 0.9, name=OWN).of("A").verdict == "FAIL"


@pytest.fixture(scope="module")
def replicates(tmp_path_factory: pytest.TempPathFactory) -> list[RunDir]:
    """Three real runs of one condition, which differ by their arrivals."""
    folder = tmp_path_factory.mktemp("replicates")
    return [write_run(folder / str(noise), fidelity(12), "real", noise=noise) for noise in (1, 2, 3)]


def fresh(runs: list[RunDir]) -> list[RunDir]:
    return [RunDir(run.path) for run in runs]


def test_the_floor_is_what_each_ordered_pair_shows(replicates: list[RunDir]) -> None:
    few = Ladder([replace(rung, upstream=()) for rung in LADDER.rungs if rung.id in ("K3b", "U3", "W1", "U6", "Lt")])
    floor = floors(fresh(replicates), few)[replicates[0].run_fp]
    assert (len(floor.runs), floor.pairs) == (3, 6)
    assert {len(effects) for by_name in floor.effects.values() for effects in by_name.values()} == {6}
    assert floor.effects.keys() == {"K3b", "U3", "W1", "U6"}
    assert floor.effects["U6"].keys() == {"KS", "mean lag"}
    assert max(floor.effects["K3b"]["mean advance"]) > 0


def test_runs_that_make_no_floor_are_refused(replicates: list[RunDir], tmp_path: Path) -> None:
    with pytest.raises(FloorError, match="has no replicate here"):
        floors(replicates[:1], LADDER)
    with pytest.raises(FloorError, match="has no replicate here"):
        floors([replicates[0], replicates[0]], LADDER)
    with pytest.raises(FloorError, match="is a sim run"):
        floors([write_run(tmp_path, condition(), "sim")], LADDER)


def test_the_command_takes_replicates_and_says_so(replicates: list[RunDir], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pair = write_pair(tmp_path, fidelity(12), noise=(4, 5))
    named = [str(pair.real.path), str(pair.sim.path), "--json", "--floor"]
    main([*named, *(str(run.path) for run in replicates[:2])])
    told = orjson.loads(capsys.readouterr().out)["pairs"][0]
    assert told["floor"] == {"runs": [run.label for run in replicates[:2]], "pairs": 2}
    known = {each["id"]: each["floor"] for each in told["rungs"]}
    assert known["U3"] is not None
    assert (known["Lt"], known["P0"]) == (None, None)
    assert main([*named, str(tmp_path / "nowhere")]) == 2
    assert "there is no real run in" in capsys.readouterr().err
