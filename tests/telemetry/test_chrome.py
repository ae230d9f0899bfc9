"""The timeline export: a valid trace, a function of the released sequence, in which nothing that overlaps can hide."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from flame.launch.cli import app
from flame.telemetry.chrome import CYCLES, trace
from flame.telemetry.rundir import RunDir, RunPair
from flame.telemetry.slots import slots_of
from tests.parity.edits import Edit
from tests.parity.fixtures import asynchronous, away, condition, fidelity, write_pair, write_run
from tests.telemetry.trace_format import Event, end, faults, ns

CONDITIONS = {"sync": condition(), "async": asynchronous(), "away": away(cycles=20)}


def told(*runs: RunDir) -> dict[str, Any]:
    return json.loads(trace([RunDir(run.path) for run in runs]))


def of(made: dict[str, Any], phases: str, **wanted: Any) -> list[Event]:
    events = made["traceEvents"]
    return [event for event in events if event["ph"] in phases and all(event.get(name) == value for name, value in wanted.items())]


@pytest.fixture(params=CONDITIONS)
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> RunPair:
    return write_pair(tmp_path, CONDITIONS[request.param])


def test_the_trace_keeps_the_rules_of_its_format(pair: RunPair) -> None:
    assert faults(told(pair.real, pair.sim)) == []


def test_it_is_a_function_of_the_run_to_the_byte(pair: RunPair) -> None:
    assert trace([pair.real, pair.sim]) == trace([RunDir(pair.real.path), RunDir(pair.sim.path)])


def test_two_runs_of_an_exact_pair_differ_in_number_and_name_alone(pair: RunPair) -> None:
    events = told(pair.real, pair.sim)["traceEvents"]
    sides = [[event for event in events if event["pid"] == pid and event["name"] != "process_name"] for pid in (1, 2)]
    for event in [event for side in sides for event in side]:
        event.pop("pid")
        event.pop("id", None)
        if event["name"] == "process_sort_index":
            event["args"] = {}
    assert sides[0] == sides[1]


def test_each_assign_is_drawn_once_in_each_form(pair: RunPair) -> None:
    made = told(pair.sim)
    ids = [f"1.{key}" for key in pair.sim.telemetry.frame("dispatch")["id"]]
    assert sorted(event["id"] for event in of(made, "b")) == sorted(ids)
    assert sorted(event["id"] for event in of(made, "s")) == sorted(ids)
    assert len([event for event in of(made, "X") if event["name"].startswith("train ")]) == len(ids)
    closed = sum(len(cohort) for cohort in pair.sim.telemetry.frame("agg_round")["cohort"])
    assert len(of(made, "t")) == closed


def test_lanes_are_the_trainers_and_nobody_overlaps(pair: RunPair) -> None:
    names = [event["args"]["name"] for event in of(told(pair.sim), "M", name="thread_name")]
    assert names == ["cycles", "dispatches", "commits", *pair.sim.condition.nodes]


def test_what_is_in_flight_is_what_the_aggregator_counted(pair: RunPair) -> None:
    """The counter is made from the slots; the aggregator wrote what it held after each close, at the same stamps or before them."""
    made = told(pair.sim)
    held = {ns(event): event["args"]["in flight"] for event in of(made, "C", name="in flight")}
    frame = pair.sim.telemetry.frame("dispatch").sort("_seq").group_by("stamp_ns", maintain_order=True).last()
    written = dict(frame.select("stamp_ns", "in_flight").iter_rows())
    assert {stamp: held[stamp] for stamp in written} == written


def test_counters_follow_the_rounds(pair: RunPair) -> None:
    made, rounds = told(pair.sim), pair.sim.telemetry.frame("agg_round").sort("cycle")
    variances = [(ns(event), event["args"]["V"]) for event in of(made, "C", name="V")]
    assert variances == list(rounds.select("stamp_ns", "variance").drop_nulls().iter_rows())
    versions = [event["args"]["version"] for event in of(made, "C", name="version")]
    assert versions == list(range(rounds["committed"].sum() + 1))
    cycles = of(made, "X", tid=CYCLES)
    assert [end(event) for event in cycles] == rounds["stamp_ns"].to_list()


def test_an_overlap_has_a_lane_of_its_own(tmp_path: Path) -> None:
    run = write_run(tmp_path, condition(), "sim")
    Edit(run).repeat("dispatch", lambda record: record["id"] == 9, id=900)
    made = told(run)
    trainer = next(slot.trainer for slot in slots_of(RunDir(run.path)) if slot.id == 900)
    (lane,) = [event["tid"] for event in of(made, "M", name="thread_name") if event["args"]["name"] == f"{trainer} (overlap)"]
    assert [event["args"]["id"] for event in of(made, "X", tid=lane)] == [900]
    assert faults(made) == []
    (begin,) = of(made, "b", id="1.900")
    assert begin["args"]["ending"] == "open"


def test_who_was_away_is_withheld_and_what_was_given_up_ends_then(tmp_path: Path) -> None:
    run = write_run(tmp_path, away(cycles=40), "sim")
    slots = {slot.id: slot for slot in slots_of(run)}
    abandoned = dict(run.telemetry.frame("abandoned").select("id", "stamp_ns").iter_rows())
    assert abandoned
    assert {key: (slots[key].end, slots[key].ending) for key in abandoned} == {key: (at, "abandon") for key, at in abandoned.items()}
    withheld = {event["args"]["id"]: (ns(event), end(event)) for event in of(told(run), "X", name="withheld")}
    assert withheld == {
        key: (done, due) for key, done, due in run.telemetry.frame("withheld").select("id", "done_ns", "due_ns").iter_rows()
    }


def test_arrival_order_is_drawn_too(tmp_path: Path) -> None:
    pair = write_pair(tmp_path, fidelity(20), noise=(1, 2))
    assert faults(told(pair.real, pair.sim)) == []


def _first(phase: str) -> Callable[[list[Event]], Event]:
    return lambda events: next(event for event in events if event["ph"] == phase)


BREAKS: dict[str, Callable[[list[Event]], object]] = {
    "unknown phase": lambda events: _first("X")(events).update(ph="Q"),
    "no pid": lambda events: _first("X")(events).pop("pid"),
    "without a length": lambda events: _first("X")(events).update(dur=-1),
    "no time": lambda events: _first("C")(events).update(ts=-5),
    "earlier than": lambda events: events.append(events[-1] | {"ts": 0.0}),
    "in which it began": lambda events: next(e for e in events if e["ph"] == "X" and e["tid"] == CYCLES).update(dur=3e6),
    "never ended": lambda events: events.remove(_first("e")(events)),
    "didn't begin so": lambda events: events.remove(_first("b")(events)),
    "is tf": lambda events: events.remove(_first("s")(events)),
    "has no number": lambda events: _first("C")(events).update(args={}),
    "has no name": lambda events: events.remove(next(e for e in events if e["name"] == "thread_name")),
}


@pytest.mark.parametrize("fault", BREAKS)
def test_the_rules_can_be_broken(fault: str, tmp_path: Path) -> None:
    made = told(write_run(tmp_path, condition(), "sim"))
    broken = copy.deepcopy(made)
    BREAKS[fault](broken["traceEvents"])
    assert any(fault in each for each in faults(broken)), faults(broken)[:3]


def test_a_flow_must_lie_in_a_slice(tmp_path: Path) -> None:
    made = told(write_run(tmp_path, condition(), "sim"))
    _first("s")(made["traceEvents"]).update(tid=3)
    assert any("lies in no slice" in each for each in faults(made))


def test_the_command_writes_real_before_sim(pair: RunPair, tmp_path: Path) -> None:
    paths = [str(pair.sim.path), str(pair.real.path)]
    done = CliRunner().invoke(app, ["export", "trace", *paths, "--out", str(tmp_path / "out" / "trace.json")])
    assert done.exit_code == 0, done.output
    written = (tmp_path / "out" / "trace.json").read_text(encoding="utf-8")
    assert written == trace([pair.real, pair.sim])
    assert [run["world"] for run in json.loads(written)["otherData"]["runs"]] == ["real", "sim"]
    assert CliRunner().invoke(app, ["export", "trace", paths[1]]).stdout == trace([pair.real])


def test_what_cant_be_drawn_is_refused_with_a_remedy(tmp_path: Path) -> None:
    run = write_run(tmp_path, condition(), "sim", level="commits")
    for path, word in ((run.path, "--level full"), (tmp_path / "nowhere", "flame runs")):
        done = CliRunner().invoke(app, ["export", "trace", str(path)])
        assert done.exit_code == 2
        assert word in done.output
