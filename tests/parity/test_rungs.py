"""Every rung passes on a pair that agrees and fails on one that was broken for it, in the tier where it judges."""

from collections.abc import Callable
from pathlib import Path

import pytest

from flame.core.progress import Progress
from flame.telemetry.records import Fault, Intrusion, Peer
from flame.telemetry.rundir import RunDir, RunPair
from parity.engine import Report, check
from parity.ladder import Ladder
from parity.rungs import LADDER
from tests.parity import spoils
from tests.parity.conftest import say_replayed
from tests.parity.early import EARLY
from tests.parity.edits import Edit, cycle_is
from tests.parity.fixtures import asynchronous, condition, fidelity, write_pair

Spoil = Callable[[RunPair], None]
Judge = Callable[..., Report]


def double_dispatch(pair: RunPair) -> None:
    """A second assign, under a new id, while the first is out."""
    Edit(pair.sim).repeat("dispatch", lambda record: record["id"] == 6, id=900)


def close_short(pair: RunPair) -> None:
    Edit(pair.real).each("agg_round", lambda record: record["cohort"].pop(), cycle_is(3))


def swap(pair: RunPair) -> None:
    """Two members of a cohort change places, and the model with them."""

    def change(record: dict) -> None:  # type: ignore[type-arg]
        cohort = record["cohort"]
        cohort[1], cohort[2] = cohort[2], cohort[1]
        record["model"] = "f" * 32

    Edit(pair.sim).each("agg_round", change, cycle_is(5))


def shift_iteration(pair: RunPair) -> None:
    """A bin that went on for one cycle more in one of the runs."""
    Edit(pair.sim).set("agg_round", lambda record: record["committed"] and record["at"]["data_id"] == 1, committed=False, reason="keep")


BROKEN: dict[str, Spoil] = {
    "P0": lambda pair: say_replayed(pair.sim, difference="step 12: effect 0 is {}, recorded {}"),
    "I0": lambda pair: Edit(pair.real).set("run_meta", lambda record: "t0" in record["nodes"], init="other"),
    "TC1": lambda pair: Edit(pair.sim).forget("agg_round", "variance"),
    "K10": lambda pair: Edit(pair.sim).set("agg_round", cycle_is(4), vclock_ns=None),
    "K1": lambda pair: Edit(pair.sim).set("agg_round", cycle_is(4), vclock_ns=1),
    "K7": lambda pair: Edit(pair.sim).verdict(wall_s=1e9),
    "Sp": lambda pair: Edit(pair.sim).verdict(wall_s=60.0),
    "P3": lambda pair: Edit(pair.sim).set("dispatch", lambda record: record["trainer"] == "t1", delay_ns=7),
    "Lt": lambda pair: Edit(pair.real).set("lateness", lambda record: record["id"] < 9, late_s=0.9),
    "S34": lambda pair: Edit(pair.sim).set("selection", cycle_is(2), eligible_fp="other"),
    "R1": double_dispatch,
    "K6": lambda pair: Edit(pair.real).set("accepted", lambda record: record["id"] == 9, interval_ns=[0, 1]),
    "Ovr": lambda pair: Edit(pair.real).set("trainer_round", lambda record: record["id"] < 20, overran=True),
    "U4": close_short,
    "L1": swap,
    "V1": shift_iteration,
    "V2": lambda pair: Edit(pair.sim).set("agg_round", cycle_is(4), variance=0.25),
    "V4": lambda pair: Edit(pair.sim).set("agg_round", lambda record: record["reason"] == "cap", reason="natural"),
    "Cm": lambda pair: Edit(pair.sim).set("comm", lambda record: record["id"] == 9, message_bytes=701),
    "C1": lambda pair: Edit(pair.sim).set("agg_eval", lambda record: record["version"] == 2, accuracy=0.4),
    "C2": lambda pair: Edit(pair.sim).set("agg_eval", lambda record: record["version"] == 2, loss=9.0),
    "K5": lambda pair: Edit(pair.real).verdict(verdict="WALL_CEILING"),
    **spoils.BROKEN,
}
"""Rung -> how a good pair is broken for it (exact tier)."""


def fewer_chosen(pair: RunPair) -> None:
    Edit(pair.sim).each("selection", lambda record: record["chosen"].pop())


def longer_bins(pair: RunPair) -> None:
    """Every second commit is a keep: bins take twice as long in the sim."""
    Edit(pair.sim).set("agg_round", lambda record: record["committed"] and record["at"]["data_id"] % 2 == 0, committed=False)


STATISTICAL: dict[str, Spoil] = {
    "S34": fewer_chosen,
    "V1": longer_bins,
    "V2": lambda pair: Edit(pair.sim).each("agg_round", lambda record: record.update(variance=record["variance"] + 0.1)),
    "V4": lambda pair: Edit(pair.sim).set("agg_round", lambda record: record["committed"], reason="plateau"),
    "C1": lambda pair: Edit(pair.sim).each("agg_eval", lambda record: record.update(accuracy=record["accuracy"] - 0.08)),
    "C2": lambda pair: Edit(pair.sim).each("agg_eval", lambda record: record.update(loss=record["loss"] + 0.2)),
    **spoils.STATISTICAL,
}
"""LOGICAL DIST rungs -> how a pair of the fidelity tier is broken for them."""

DIAGNOSTIC = ("Ovr", *spoils.DIAGNOSTIC)


@pytest.fixture
def ground(request: pytest.FixtureRequest, rung: str, tmp_path: Path) -> RunPair:
    """The pair that a rung is tried on: the good one, unless that has nothing for it to look at."""
    make = spoils.GROUNDS.get(rung)
    pair: RunPair = make(tmp_path) if make else request.getfixturevalue("good")
    return pair


@pytest.mark.parametrize("rung", BROKEN)
def test_every_rung_passes_on_a_good_pair(rung: str, ground: RunPair, judge: Judge) -> None:
    result = judge(ground).of(rung)
    assert result.verdict == ("DIAG" if rung in DIAGNOSTIC else "PASS"), result.reason
    assert result.finding.ok is True or result.finding.measures
    assert result.finding.n or rung == "Sp"


@pytest.mark.parametrize("rung", BROKEN)
def test_every_rung_fails_on_a_pair_that_was_broken_for_it(rung: str, ground: RunPair, judge: Judge) -> None:
    BROKEN[rung](ground)
    result = judge(ground, strict=rung in DIAGNOSTIC).of(rung)
    assert result.verdict == "FAIL", result.reason
    assert result.reason


def test_no_rung_lacks_a_broken_pair() -> None:
    assert BROKEN.keys() | EARLY.keys() == {rung.id for rung in LADDER.rungs}
    distributional = {rung.id for rung in LADDER.rungs if rung.tier == "DIST" and rung.domain == "LOGICAL"}
    assert STATISTICAL.keys() | {rung for rung, case in EARLY.items() if case.differs} == distributional


def test_a_good_asynchronous_pair_passes_whole(tmp_path: Path, judge: Judge) -> None:
    report = judge(write_pair(tmp_path, asynchronous()))
    assert {result.verdict for result in report.results if result.rung.id not in (*EARLY, *spoils.GROUNDS, "V5")} == {"PASS", "DIAG"}
    assert report.of("V5").reason.endswith("no `agg_round.threshold`")
    assert report.exit_code == 0


CYCLES = 300
"""Cycles after which every statistic of the fidelity tier has enough bins."""


def _alone(rung: str) -> Ladder:
    """A ladder of that rung only: the statistics of the others take their time."""
    others = {other.id: () for other in LADDER.rungs if other.id != rung}
    return Ladder([other for other in LADDER.rungs if other.id == rung], others)


@pytest.mark.parametrize("rung", sorted(STATISTICAL))
def test_a_statistic_passes_on_runs_of_one_law_and_fails_on_another(rung: str, tmp_path: Path) -> None:
    pair = write_pair(tmp_path, fidelity(CYCLES), noise=(1, 1))
    result = check(pair, _alone(rung)).of(rung)
    assert result.verdict == "PASS", result.reason
    STATISTICAL[rung](pair)
    result = check(RunPair(RunDir(pair.real.path), RunDir(pair.sim.path)), _alone(rung)).of(rung)
    assert result.verdict == "FAIL", result.reason
    assert "critical" in result.reason or not result.finding.measures


def test_a_statistic_of_too_few_bins_says_how_many_it_needs(tmp_path: Path, judge: Judge) -> None:
    result = judge(write_pair(tmp_path, fidelity(), noise=(1, 2))).of("V1")
    assert result.verdict == "SKIP"
    assert result.reason.startswith("n=4, needs 16 to see 0.20")


def test_lateness_beyond_the_grace_always_fails(good: RunPair, judge: Judge) -> None:
    Edit(good.real).set("lateness", lambda record: record["id"] == 3, late_s=20.0)
    assert "beyond the grace" in judge(good).of("Lt").reason


@pytest.mark.parametrize(("fault", "excused"), [("respawn", True), ("reconnected", True), ("refused", False)])
def test_updates_that_waited_for_a_fault_are_left_out_and_counted(fault: str, excused: bool, good: RunPair, judge: Judge) -> None:
    Edit(good.real).set("lateness", lambda record: record["id"] < 9, late_s=0.9)
    Edit(good.real).add(Fault(fault, "w0", "killed"), cycle_is(0))
    result = judge(good).of("Lt")
    assert result.verdict == ("PASS" if excused else "FAIL")
    assert ("left out that waited for a fault" in result.reason) == excused
    assert result.reason.endswith(f"faults that were dealt with: {fault} 1")


def test_one_late_update_among_a_few_is_no_finding(good: RunPair, judge: Judge) -> None:
    Edit(good.real).set("lateness", lambda record: record["id"] == 3, late_s=0.3)
    assert judge(good).of("Lt").verdict == "SKIP"


def test_replay_that_was_not_done_is_never_a_pass(good: RunPair, judge: Judge) -> None:
    say_replayed(good.real, skipped="no blobs before step 40")
    result = judge(good).of("P0")
    assert result.verdict == "SKIP"
    assert "no blobs before step 40" in result.reason


def test_an_empty_journal_is_never_a_pass(good: RunPair, judge: Judge) -> None:
    for run in (good.real, good.sim):
        say_replayed(run, steps=0)
    assert judge(good).of("P0").verdict == "SKIP"


def test_a_run_without_a_journal_skips_replay(good: RunPair, judge: Judge) -> None:
    (good.sim.path / "journal" / "aggregator-1.jsonl").unlink()
    assert judge(good).of("P0").reason.startswith("sim: no journal")


def test_the_first_divergent_cycle_is_told_with_both_cohorts(good: RunPair, judge: Judge) -> None:
    swap(good)
    result = judge(good).of("L1")
    assert result.reason == "1 of 12 cycles differs (8.3 %), first at cycle 5 (round 0, bin 1, iteration 2)"
    assert result.finding.detail[0].startswith("real [t0 t2 t1 t3]   sim [t0 t1 t2 t3]")
    assert "order" in result.finding.detail[0]
    assert any(line.startswith("hint: flame replay") for line in result.finding.detail)


def test_a_sequence_that_is_shorter_for_no_reason_fails(good: RunPair, judge: Judge) -> None:
    Edit(good.sim).drop("agg_round", cycle_is(11))
    result = judge(good).of("L1")
    assert result.verdict == "FAIL"
    assert result.reason == "real closed 12 cycles, sim 11; the first 11 are equal"


def test_a_cycle_that_is_missing_in_the_middle_is_named(good: RunPair, judge: Judge) -> None:
    Edit(good.real).drop("agg_round", cycle_is(4))
    result = judge(good).of("L1")
    assert "first at cycle 4" in result.reason
    assert result.finding.detail[0] == "real has no record of that cycle"


def test_a_run_that_was_stopped_may_be_shorter(good: RunPair, judge: Judge) -> None:
    Edit(good.sim).drop("agg_round", lambda record: record["at"]["cycle"] >= 8)
    Edit(good.sim).verdict(verdict="INTERRUPTED")
    assert judge(good).of("L1").verdict == "PASS"


def test_resent_weights_are_left_out_and_shown(good: RunPair, judge: Judge) -> None:
    Edit(good.real).repeat("comm", lambda record: record["id"] == 9 and record["direction"] == "down", payload="resend")
    result = judge(good).of("Cm")
    assert result.verdict == "PASS"
    assert "1 resends of" in result.reason


def test_an_update_that_a_respawned_worker_sends_again_counts_once(good: RunPair, judge: Judge) -> None:
    edit = Edit(good.real)
    edit.repeat("comm", lambda record: record["id"] == 9 and record["direction"] == "up")

    def respawned(lines: list[dict]) -> list[dict]:  # type: ignore[type-arg]
        same = [line for line in lines if line["record"]["kind"] == "comm" and line["record"]["id"] == 9]
        if len(same) > 1 and same[-1]["record"]["direction"] == "up":
            same[-1]["incarnation"] = "2"
        return lines

    assert judge(good).of("Cm").verdict == "FAIL"
    edit.lines(respawned)
    assert judge(good).of("Cm").verdict == "PASS"


def test_a_trainer_that_only_one_run_chose_is_not_compared(good: RunPair, judge: Judge) -> None:
    Edit(good.sim).set("dispatch", lambda record: record["trainer"] == "t1", trainer="t9")
    assert judge(good).of("P3").finding.n == 3


def test_a_planned_departure_voids_its_row(tmp_path: Path, judge: Judge) -> None:
    pair = write_pair(tmp_path, condition())
    for run in (pair.real, pair.sim):
        edit = Edit(run)
        edit.drop("accepted", lambda record: record["id"] == 48)
        edit.each("agg_round", lambda record: record["cohort"].pop(), cycle_is(11))
        edit.set("agg_round", cycle_is(11), goal=3)
        edit.add(Peer("t3", False, "planned", True), lambda record: record["kind"] == "dispatch" and record["id"] == 48)
    assert judge(pair).of("U4").verdict == "PASS", judge(pair).of("U4").reason


# ---- where there is nothing to look at, there is no pass


def _nothing_counted(pair: RunPair) -> None:
    for run in (pair.real, pair.sim):
        Edit(run).set("comm", id=999)


def _no_common_version(pair: RunPair) -> None:
    Edit(pair.sim).drop("agg_eval", lambda record: record["version"] < 3)
    Edit(pair.real).drop("agg_eval", lambda record: record["version"] > 2)


NOTHING: dict[str, tuple[Spoil, str]] = {
    "Cm": (_nothing_counted, "no message of an update of the window"),
    "K7": (lambda pair: Edit(pair.sim).verdict(wall_s=0.0), "no wall time that can be measured"),
    "Sp": (lambda pair: Edit(pair.sim).verdict(wall_s=0.0), "no wall time that can be measured"),
    "P3": (lambda pair: Edit(pair.sim).each("dispatch", lambda record: record.update(trainer="x")), "no trainer was dispatched in both"),
}


@pytest.mark.parametrize("rung", NOTHING)
def test_nothing_to_look_at_is_a_skip_with_its_reason(rung: str, good: RunPair, judge: Judge) -> None:
    spoil, reason = NOTHING[rung]
    spoil(good)
    result = judge(good).of(rung)
    assert result.verdict == "SKIP"
    assert reason in result.reason


def test_versions_that_only_one_run_evaluated_fail_in_the_exact_tier(good: RunPair, judge: Judge) -> None:
    _no_common_version(good)
    assert judge(good).of("C1").verdict == "SKIP"


def test_the_evaluation_of_the_last_commit_may_be_missing(good: RunPair, judge: Judge) -> None:
    Edit(good.sim).drop("agg_eval", lambda record: record["version"] == 4)
    result = judge(good).of("C1")
    assert (result.verdict, result.finding.n) == ("PASS", 3)


def test_a_variance_that_is_never_defined_in_the_bins_is_a_skip(tmp_path: Path) -> None:
    pair = write_pair(tmp_path, fidelity(), noise=(1, 2))
    Edit(pair.sim).set("agg_round", lambda record: record["at"]["cycle"] < 11, variance=None)
    assert check(pair, _alone("V2")).of("V2").reason == "no variance is defined in the completed bins of one run"


def test_a_run_without_evaluations_need_not_have_them(tmp_path: Path, judge: Judge) -> None:
    pair = write_pair(tmp_path, condition(eval={"every": 0}))
    for run in (pair.real, pair.sim):
        Edit(run).drop("agg_eval")
    report = judge(pair)
    assert report.of("TC1").verdict == "PASS"
    assert report.of("C1").verdict == "SKIP"


def test_what_was_never_dispatched_and_who_counts_twice_is_told(good: RunPair, judge: Judge) -> None:
    Edit(good.sim).drop("dispatch", lambda record: record["id"] == 9)
    faults = " ".join(judge(good).of("U4").finding.detail)
    assert "release of id 9, which was never dispatched" in faults
    assert "close of id 9, which was never dispatched" in faults
    Edit(good.real).each("agg_round", lambda record: record["cohort"][1].update(trainer="t0"), cycle_is(3))
    assert "real: cycle 3 counts `t0` 2 times" in judge(good).of("U4").finding.detail


def test_an_update_that_was_taken_twice_is_told(good: RunPair, judge: Judge) -> None:
    Edit(good.real).repeat("accepted", lambda record: record["id"] == 9)
    assert "real: id 9 of `t0` was accepted 2 times" in judge(good).of("U4").reason


def test_a_void_ends_a_row(good: RunPair, judge: Judge) -> None:
    for run in (good.real, good.sim):
        edit = Edit(run)
        edit.drop("accepted", lambda record: record["id"] == 46)
        edit.each("agg_round", lambda record: record["cohort"].pop(2), cycle_is(11))
        edit.set("agg_round", cycle_is(11), goal=3)
        assert judge(good).of("U4").verdict == "FAIL"
    for run in (good.real, good.sim):
        lost = Intrusion(Progress(cycle=11), "lost `t1`", [46])
        Edit(run).add(lost, lambda record: record["kind"] == "dispatch" and record["id"] == 48)
    assert judge(good).of("U4").verdict == "PASS", judge(good).of("U4").reason


def test_an_id_that_was_never_counted_in_one_run_is_named(good: RunPair, judge: Judge) -> None:
    Edit(good.sim).drop("comm", lambda record: record["id"] == 9)
    assert judge(good).of("Cm").finding.detail[-1].endswith("sim nothing")
