"""Stages 1 to 5: each rung passes on a pair that agrees and fails on one that was broken for it, in both tiers."""

from collections.abc import Callable
from pathlib import Path

import pytest

from flame.telemetry.rundir import RunDir, RunPair
from parity.engine import Report, check
from parity.ladder import Ladder
from parity.rungs import LADDER
from tests.parity.early import EARLY
from tests.parity.fixtures import away, write_pair

Judge = Callable[..., Report]
RUNGS = {rung.id: rung for rung in LADDER.rungs}
JUDGED = [rung for rung in EARLY if RUNGS[rung].tier != "DIAG"]
SHOWN = [rung for rung in EARLY if RUNGS[rung].tier == "DIAG"]
LOGICAL = [rung for rung in JUDGED if RUNGS[rung].tier == "DIST" and RUNGS[rung].domain == "LOGICAL"]


def _alone(rung: str) -> Ladder:
    """A ladder of that rung only: the statistics of the others take their time."""
    others = {other: () for other in RUNGS if other != rung}
    return Ladder([RUNGS[rung]], others)


def _again(pair: RunPair) -> RunPair:
    """The pair as its files are now."""
    return RunPair(RunDir(pair.real.path), RunDir(pair.sim.path))


@pytest.mark.parametrize("rung", JUDGED)
def test_it_passes_on_a_good_pair_and_fails_on_one_that_was_broken_for_it(rung: str, tmp_path: Path) -> None:
    case = EARLY[rung]
    pair = write_pair(tmp_path, case.made())
    result = check(pair, _alone(rung)).of(rung)
    assert result.verdict == "PASS", result.reason
    assert result.finding.n
    case.broken(pair)
    result = check(_again(pair), _alone(rung)).of(rung)
    assert result.verdict == "FAIL", result.reason
    assert result.reason


CONSEQUENCES = ("K2", "A4dur", "A5", "S1")
"""Rungs whose broken pairs break something below them first."""


@pytest.mark.parametrize("rung", [rung for rung in JUDGED if rung not in CONSEQUENCES])
def test_it_is_to_blame_in_the_whole_ladder(rung: str, tmp_path: Path, judge: Judge) -> None:
    pair = write_pair(tmp_path, EARLY[rung].made())
    EARLY[rung].broken(pair)
    result = judge(pair).of(rung)
    assert result.role == "ROOT-CAUSE", (result.verdict, result.reason, result.by)


@pytest.mark.parametrize("rung", LOGICAL)
def test_its_statistic_passes_on_runs_of_one_law_and_fails_on_another(rung: str, tmp_path: Path) -> None:
    case = EARLY[rung]
    pair = write_pair(tmp_path, case.arriving(), noise=(1, 1))
    result = check(pair, _alone(rung)).of(rung)
    assert result.verdict == "PASS", result.reason
    assert case.differs is not None
    case.differs(pair)
    result = check(_again(pair), _alone(rung)).of(rung)
    assert result.verdict == "FAIL", result.reason


@pytest.mark.parametrize("rung", SHOWN)
def test_what_is_only_shown_has_a_number_and_says_what_it_lacks(rung: str, tmp_path: Path) -> None:
    case = EARLY[rung]
    pair = write_pair(tmp_path, case.made())
    result = check(pair, _alone(rung)).of(rung)
    assert (result.verdict, result.finding.effect is None) == ("DIAG", False), result.reason
    before = result.reason
    case.broken(pair)
    result = check(_again(pair), _alone(rung)).of(rung)
    assert result.reason != before
    assert result.verdict == ("DIAG" if rung == "K3a" else "SKIP"), result.reason


@pytest.mark.parametrize("rung", ["A1", "A3", "A4", "A4dur", "A5", "A6", "A7", "A8"])
def test_where_nobody_is_ever_away_nothing_is_judged(rung: str, good: RunPair) -> None:
    result = check(good, _alone(rung)).of(rung)
    assert (result.verdict, "nobody is ever away" in result.reason) == ("SKIP", True)


def test_a_pair_with_absences_passes_whole(tmp_path: Path, judge: Judge) -> None:
    report = judge(write_pair(tmp_path, away()))
    verdicts = {result.rung.id: result.verdict for result in report.results if result.verdict not in ("PASS", "DIAG")}
    assert verdicts == {"Sx": "SKIP", "Sd": "SKIP", "V5": "SKIP"}, [(result.rung.id, result.reason) for result in report.results]
