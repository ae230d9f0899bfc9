"""The explainer: the class, the cycle and the row of a parting; what it says where it can't know more."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flame.telemetry.records import Peer
from flame.telemetry.rundir import RunDir, RunPair
from parity.derived.lateness import jitter_s
from parity.engine import Report
from parity.evidence import Pair, Run
from parity.explainer.explain import explain
from parity.explainer.story import Story
from parity.reports.document import document
from tests.parity.conftest import say_replayed
from tests.parity.edits import Edit, cycle_is
from tests.parity.fixtures import arriving, asynchronous, condition, write_pair
from tests.parity.partings import CAUSES, FIRST, accepted_first, ids, is_id, overtaken, race, respawned, row_of, two_held_up
from tests.parity.test_report import text

Judge = Callable[..., Report]


def story_of(pair: RunPair, **options: Any) -> Story | None:
    """The story of a pair as its files are now."""
    return explain(Pair(Run("real", RunDir(pair.real.path)), Run("sim", RunDir(pair.sim.path))), **options)


def told(pair: RunPair) -> Story:
    story = story_of(pair)
    assert story is not None
    return story


@pytest.mark.parametrize("cycle", [0, 4, 9])
@pytest.mark.parametrize(("cause", "make"), CAUSES, ids=[make.__name__ for _, make in CAUSES])
def test_each_cause_is_named_with_its_cycle_and_its_row(cause: str, make: Any, cycle: int, tmp_path: Path) -> None:
    pair, row, real = make(tmp_path, cycle)
    story = told(pair)
    assert (story.cause, story.row) == (cause, row)
    assert story.real is not None
    assert story.real.text.startswith(real)
    assert story.cycle == cycle
    assert story.evidence


@pytest.mark.parametrize("shape", [condition, asynchronous, lambda: arriving(condition())])
def test_equal_runs_have_no_story(shape: Any, tmp_path: Path) -> None:
    pair = write_pair(tmp_path, shape())
    assert story_of(pair) is None
    assert story_of(pair, logical=True) is None


def test_a_gap_wider_than_the_jitter_is_no_race(tmp_path: Path) -> None:
    pair, *_ = race(tmp_path, 3)
    Edit(pair.real).set("lateness", late_s=0.001)
    assert told(pair).cause != "RACE"


def test_a_fault_that_was_over_before_explains_nothing(tmp_path: Path) -> None:
    pair, *_ = respawned(tmp_path, 3)
    Edit(pair.real).lines(lambda lines: [line | {"t_ns": 0} if line["record"]["kind"] == "fault" else line for line in lines])
    assert told(pair).cause != "FAULT"


def test_what_a_fault_held_up_is_no_jitter(tmp_path: Path) -> None:
    pair, *_ = two_held_up(tmp_path, 3)
    assert jitter_s(Run("real", RunDir(pair.real.path))) < 0.1
    Edit(pair.real).drop("fault")
    assert jitter_s(Run("real", RunDir(pair.real.path))) > 1


def test_a_worker_that_was_down_before_the_dispatch_explains_it_when_it_comes_back(tmp_path: Path) -> None:
    pair, *_ = respawned(tmp_path, 3)
    Edit(pair.real).drop("fault")
    Edit(pair.real).add(Peer(FIRST, True, "announced again", planned=False), accepted_first(3))
    story = told(pair)
    assert story.cause == "FAULT"
    assert f"`{FIRST}` up: announced again" in " ".join(story.evidence)


def test_a_fault_in_which_the_update_was_not_late_explains_nothing(tmp_path: Path) -> None:
    pair, *_ = respawned(tmp_path, 3)
    Edit(pair.real).set("lateness", late_s=0.001)
    assert told(pair).cause == "UNKNOWN"


def test_an_update_that_left_just_before_the_end_is_not_lost(tmp_path: Path) -> None:
    """It was under way: the last cycle closed without it, a race."""
    pair = write_pair(tmp_path, arriving(condition(delays={"values": (1.0, 1.502, 1.5, 2.5)}, goal=3, loop="async", commit=["agg_goal"])))
    rows = pair.sim.telemetry.frame("accepted").sort("_seq")
    last = rows["id"][-1]
    for kind in ("accepted", "lateness"):
        Edit(pair.real).drop(kind, is_id(last))
    assert told(pair).cause != "LOST"


def test_a_replay_that_differs_is_logic_whatever_else_there_is(tmp_path: Path) -> None:
    pair, *_ = race(tmp_path, 3)
    say_replayed(pair.real, difference="step 41 of aggregator: effect 0 is ...", step=41, now=1)
    story = told(pair)
    assert (story.cause, story.step, story.node) == ("LOGIC", 41, "aggregator")
    assert story.command.endswith("--node aggregator --until 41 --print")


def test_a_replay_that_differs_in_an_equal_pair_is_a_story_too(good: RunPair) -> None:
    say_replayed(good.sim, node="t3", difference="step 7 of t3: ...", step=7, now=1)
    story = told(good)
    assert (story.cause, story.row, story.node, story.step) == ("LOGIC", None, "t3", 7)
    assert str(good.sim.path) in story.command


def test_rows_that_are_equal_and_a_cycle_that_is_not(good: RunPair) -> None:
    Edit(good.sim).set("agg_round", cycle_is(5), model="x")
    story = told(good)
    assert (story.cause, story.cycle, story.row) == ("LOGIC", 5, None)
    assert "differs in: model" in " ".join(story.evidence)


def test_a_run_that_was_asked_to_stop(good: RunPair) -> None:
    rows = good.real.telemetry.frame("accepted").sort("_seq")["id"].to_list()
    edit = Edit(good.real)
    for kind in ("accepted", "lateness", "task_send"):
        edit.drop(kind, lambda record: record.get("id") in rows[10:])
    for kind in ("agg_round", "agg_eval"):
        edit.drop(kind, lambda record: record["at"]["cycle"] >= 2)
    (good.real.path / "verdict.json").unlink()
    story = told(good)
    assert (story.cause, story.row, story.real) == ("FAULT", 10, None)
    assert "real has no more rows: it has no verdict" in story.evidence
    assert "real has no more rows" in str(story)


def test_a_story_is_the_end_of_a_failing_report(good: RunPair, judge: Judge) -> None:
    overtaken(good, 4, 0.0)
    report = judge(good)
    said = text(report, width=160)
    assert report.story is not None
    assert said.index("STORY") > said.index("FAIL    L1")
    assert "the runs part at cycle 4" in said
    assert "real [t0 11.000 t1 12.000 t2 11.500 t3 12.500] closed 12.500" in said
    assert "hint: flame replay" in said[said.index("STORY") :]
    (pair,) = document([report])["pairs"]
    assert (pair["story"]["cause"], pair["story"]["cycle"], pair["story"]["row"]) == ("LOGIC", 4, row_of(good, 4))
    assert [member["trainer"] for member in pair["story"]["cohorts"][0]["members"]] == ["t0", "t1", "t2", "t3"]


def test_a_report_without_a_difference_has_no_story(good: RunPair, judge: Judge) -> None:
    report = judge(good)
    assert report.story is None
    assert "STORY" not in text(report)
    assert document([report])["pairs"][0]["story"] is None


def test_an_explainer_that_breaks_is_a_note_and_changes_no_verdict(good: RunPair, judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    one, _ = ids(good, 3)
    Edit(good.sim).set("accepted", is_id(one), loss=0.5)
    Edit(good.sim).set("agg_round", cycle_is(3), model="x")
    before = judge(good).exit_code

    def breaks(pair: Pair) -> None:
        raise RuntimeError("lost the thread")

    monkeypatch.setattr("parity.engine.explain", breaks)
    report = judge(good)
    assert report.exit_code == before == 1
    assert any("the explainer broke: RuntimeError: lost the thread" in note for note in report.notes)
