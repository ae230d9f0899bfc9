"""Every law holds in a good run and is broken by the run that was spoiled for it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from flame.core.progress import Progress
from flame.telemetry.records import RunEnd
from flame.telemetry.rundir import RunDir
from parity.invariants import LAWS, Ruling, check_run, used
from tests.parity.edits import Edit, cycle_is
from tests.parity.fixtures import condition, write_run

Spoil = Callable[[Edit], None]

BROKEN: dict[str, Spoil] = {
    "ending": lambda edit: edit.verdict(verdict="CRASH", reason=""),
    "fields": lambda edit: edit.forget("accepted", "loss"),
    "closes": lambda edit: edit.drop("agg_round", cycle_is(4)),
    "progress": lambda edit: edit.each("agg_round", lambda record: record["at"].update(iteration=7), cycle_is(4)),
    "clock": lambda edit: edit.set("agg_round", cycle_is(4), stamp_ns=1),
    "vclock": lambda edit: edit.set("agg_round", cycle_is(4), vclock_ns=1),
    "stamps": lambda edit: edit.set("task_send", lambda record: record["id"] == 9, stamp_ns=1),
    "residence": lambda edit: edit.repeat("dispatch", lambda record: record["id"] == 6, id=900),
    "once": lambda edit: edit.set("dispatch", lambda record: record["id"] == 5, draw=0),
    "sizes": lambda edit: edit.set("selection", cycle_is(3), goal=3),
    "concurrency": lambda edit: edit.set("dispatch", lambda record: record["id"] == 5, in_flight=9),
    "conservation": lambda edit: edit.each("agg_round", lambda record: record["cohort"].pop(), cycle_is(4)),
    "alternation": lambda edit: edit.drop("task_send", lambda record: record["id"] == 9),
    "punctual": lambda edit: edit.each("task_send", lambda record: record.update(stamp_ns=record["stamp_ns"] + 1)),
    "answers": lambda edit: edit.drop("task_send", lambda record: record["id"] == 9),
    "counts": lambda edit: edit.set("agg_round", cycle_is(4), accepts=1),
    "staleness": lambda edit: edit.set("accepted", lambda record: record["id"] == 9, staleness=-1),
    "evaluations": lambda edit: edit.set("agg_eval", lambda record: record["version"] == 2, loss=None),
    "budget": lambda edit: edit.verdict(cycles=3, reason=""),
    "gaps": lambda edit: edit.each("agg_round", lambda record: record.update(wall_s=record["wall_s"] + 500), cycle_is(11)),
    "ceiling": lambda edit: edit.verdict(verdict="WALL_CEILING"),
}


def _ruling(run: RunDir, law: str) -> Ruling:
    return next(ruling for ruling in check_run(RunDir(run.path)) if ruling.law.name == law)


def test_every_law_holds_in_a_good_run(tmp_path: Path) -> None:
    rulings = check_run(write_run(tmp_path, condition(), "sim"))
    assert [(ruling.law.name, ruling.look.faults) for ruling in rulings if ruling.holds is not True] == []


def test_a_real_run_has_no_virtual_clock_to_look_at(tmp_path: Path) -> None:
    rulings = check_run(write_run(tmp_path, condition(), "real"))
    assert {ruling.law.name for ruling in rulings if ruling.holds is None} == {"vclock", "punctual"}
    assert all(ruling.holds is not False for ruling in rulings)


@pytest.mark.parametrize("law", [law.name for law in LAWS])
def test_every_law_is_broken_by_the_run_that_was_spoiled_for_it(law: str, tmp_path: Path) -> None:
    run = write_run(tmp_path, condition(), "sim")
    BROKEN[law](Edit(run))
    ruling = _ruling(run, law)
    assert ruling.holds is False
    assert ruling.look.faults[0]


def test_no_law_lacks_a_broken_run() -> None:
    assert BROKEN.keys() == {law.name for law in LAWS}


def test_what_the_level_doesnt_write_is_not_looked_at(tmp_path: Path) -> None:
    rulings = check_run(write_run(tmp_path, condition(), "sim", level="summary"))
    unseen = {ruling.law.name for ruling in rulings if ruling.holds is None}
    assert unseen == {law.name for law in LAWS if law.kinds}
    assert all(ruling.holds is not False for ruling in rulings)


@pytest.mark.parametrize(
    ("spoil", "fault"),
    [
        (lambda edit: edit.drop("run_end"), "0 run_end records instead of one"),
        (lambda edit: edit.set("run_end", verdict="STALLED"), "run_end says STALLED, verdict.json COMPLETED"),
        (lambda edit: (edit.path / "verdict.json").unlink(), "it has no verdict: still going, or crashed"),
    ],
)
def test_an_ending_is_one_and_the_same_in_both_places(spoil: Spoil, fault: str, tmp_path: Path) -> None:
    run = write_run(tmp_path, condition(), "sim")
    spoil(Edit(run))
    assert _ruling(run, "ending").look.faults == [fault]


def test_a_budget_is_only_asked_of_a_run_that_completed(tmp_path: Path) -> None:
    run = write_run(tmp_path, condition(), "sim")
    Edit(run).verdict(verdict="STALLED", cycles=1)
    assert _ruling(run, "budget").holds is None


def test_bins_dont_go_back(tmp_path: Path) -> None:
    run = write_run(tmp_path, condition(), "sim")
    Edit(run).each("agg_round", lambda record: record["at"].update(data_id=0), cycle_is(11))
    assert "goes back to round 0, bin 0" in _ruling(run, "progress").look.faults[0]


def test_a_trainer_answers_what_it_received(tmp_path: Path) -> None:
    run = write_run(tmp_path, condition(), "sim")
    Edit(run).drop("task_recv", lambda record: record["id"] == 9)
    assert _ruling(run, "alternation").look.faults == ["`t0` sent id 9, it had nothing to answer"]


def test_one_close_is_too_few(tmp_path: Path) -> None:
    run = write_run(tmp_path, condition(stop={"cycles": 1}), "sim")
    assert _ruling(run, "closes").look.faults == ["1 closed cycles"]
    assert _ruling(run, "gaps").holds is None


def test_what_was_really_used_is_read_from_the_telemetry(tmp_path: Path) -> None:
    found = used(write_run(tmp_path, condition(), "real"))
    assert (found["clock"], found["tier"], found["commit"]) == (["wall"], ["exact"], ["cap", "keep", "natural"])
    assert found["payload"] == ["full", "none"]


def test_two_endings_are_one_too_many(tmp_path: Path) -> None:
    run = write_run(tmp_path, condition(), "sim")
    Edit(run).add(RunEnd(Progress(), "COMPLETED", "", 1, 0, 0), lambda record: record["kind"] == "run_end")
    assert _ruling(run, "ending").look.faults == ["2 run_end records instead of one"]
