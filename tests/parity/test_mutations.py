"""A good pair is changed in one way, and one rung, the intended one, is the root cause. None of them is reported as all well."""

from collections.abc import Callable
from math import nextafter
from pathlib import Path
from typing import Any

import pytest

from flame.core.progress import Progress
from flame.telemetry.records import Accepted
from flame.telemetry.rundir import RunPair
from parity.engine import Report
from tests.parity import spoils
from tests.parity.conftest import say_replayed
from tests.parity.early import taking
from tests.parity.edits import Edit, Line, cycle_is

Spoil = Callable[[RunPair], None]


def _id(number: int) -> Callable[[Line], bool]:
    return lambda record: record.get("id") == number


def _both(pair: RunPair, change: Callable[[Edit], None]) -> None:
    for run in (pair.real, pair.sim):
        change(Edit(run))


def _shift_due(pair: RunPair) -> None:
    Edit(pair.sim).each("dispatch", lambda record: record.update(due_ns=record["due_ns"] + 1), _id(7))


def _shift_member(pair: RunPair) -> None:
    Edit(pair.real).each("agg_round", lambda record: record["cohort"][2].update(stamp_ns=record["cohort"][2]["stamp_ns"] + 1), cycle_is(6))


def _drop_update(pair: RunPair) -> None:
    Edit(pair.sim).drop("accepted", _id(22))


def _lose_update(pair: RunPair) -> None:
    """Dispatched, due before the last close, and never heard of again; the last cycle was closed without it."""
    for run in (pair.real, pair.sim):
        edit = Edit(run)
        edit.drop("accepted", _id(46))
        edit.each("agg_round", lambda record: record.update(cohort=_without(46, record["cohort"]), goal=3), cycle_is(11))


def _without(number: int, cohort: list[Line]) -> list[Line]:
    return [member for member in cohort if member["id"] != number]


def _count_twice(pair: RunPair) -> None:
    """The same update in two cycles."""
    edit, taken = Edit(pair.sim), {}
    edit.each("agg_round", lambda record: taken.update(record["cohort"][0]), cycle_is(5))
    edit.each("agg_round", lambda record: record["cohort"].__setitem__(0, dict(taken)), cycle_is(6))


def _swap_commits(pair: RunPair) -> None:
    """Two cohorts change places."""
    seen: dict[int, Any] = {}
    edit = Edit(pair.sim)
    edit.each("agg_round", lambda record: seen.update({record["at"]["cycle"]: record["cohort"]}))
    edit.each("agg_round", lambda record: record.update(cohort=seen[6]), cycle_is(5))
    edit.each("agg_round", lambda record: record.update(cohort=seen[5]), cycle_is(6))


def _double_dispatch(pair: RunPair) -> None:
    Edit(pair.sim).repeat("dispatch", _id(6), id=900)


def _dispatch_same_id_twice(pair: RunPair) -> None:
    Edit(pair.sim).repeat("dispatch", _id(6))


def _dispatch_too_early(pair: RunPair) -> None:
    """The next assign of a trainer is written before the close that frees it."""

    def move(lines: list[Line]) -> list[Line]:
        place = next(
            (number for number, line in enumerate(lines) if line["record"]["kind"] == "dispatch" and line["record"]["id"] == 9), None
        )
        close = next(
            (number for number, line in enumerate(lines) if line["record"]["kind"] == "agg_round" and cycle_is(1)(line["record"])), None
        )
        if place is not None and close is not None:
            lines[place]["seq"], lines[close]["seq"] = lines[close]["seq"], lines[place]["seq"]
        return lines

    Edit(pair.real).lines(move)


def _reject_and_take(pair: RunPair) -> None:
    at = Progress(0, 1, 2, 1, 5)
    record = Accepted(at, 22, "t1", False, "stale", 1, 1, 2, 0, None, (12_500_000_000, 14_500_000_000), 14_500_000_000, 1.0, 8.0)
    Edit(pair.real).add(record, lambda line: line["kind"] == "accepted" and line["id"] == 22)


def _foreign_trainer(pair: RunPair) -> None:
    Edit(pair.sim).set("accepted", _id(14), trainer="t0")


def _faster(pair: RunPair) -> None:
    """D of one trainer, and with it every due, is a second less in the sim."""
    edit, dues = Edit(pair.sim), dict[int, int]()

    def dispatch(record: Line) -> None:
        record.update(delay_ns=record["delay_ns"] - 10**9, due_ns=record["due_ns"] - 10**9)
        dues[record["id"]] = record["due_ns"]

    def accept(record: Line) -> None:
        record.update(due_ns=dues[record["id"]], interval_ns=[record["interval_ns"][0], dues[record["id"]]])

    def close(record: Line) -> None:
        for member in record["cohort"]:
            member.update(stamp_ns=dues.get(member["id"], member["stamp_ns"]))

    edit.each("dispatch", dispatch, lambda record: record["trainer"] == "t3")
    edit.each("accepted", accept, lambda record: record["id"] in dues)
    edit.each("task_send", lambda record: record.update(stamp_ns=dues[record["id"]]), lambda record: record["id"] in dues)
    edit.each("agg_round", close)


def _last_bit(pair: RunPair) -> None:
    Edit(pair.sim).each("agg_round", lambda record: record.update(variance=nextafter(record["variance"], 1.0)), cycle_is(9))


def _one_short(pair: RunPair) -> None:
    _both(pair, lambda edit: edit.each("agg_round", lambda record: record["cohort"].pop(), cycle_is(11)))


def _forced(pair: RunPair) -> None:
    Edit(pair.sim).set("agg_round", lambda record: record["reason"] == "natural", reason="cap")


def _kept(pair: RunPair) -> None:
    Edit(pair.sim).set("agg_round", cycle_is(5), committed=False, reason="keep")


def _byte_more(pair: RunPair) -> None:
    Edit(pair.sim).set("comm", lambda record: record["id"] == 9 and record["direction"] == "up", message_bytes=701)


MUTATIONS: dict[str, tuple[str, Spoil]] = {
    "replay differs in one step": ("P0", lambda pair: say_replayed(pair.real, difference="step 4: effect 1")),
    "a worker starts from other parameters": ("I0", lambda pair: Edit(pair.real).set("run_meta", lambda r: "t1" in r["nodes"], init="x")),
    "the sim has other data": ("I0", lambda pair: Edit(pair.sim).set("run_meta", data="x")),
    "the gate's variance is not written": ("TC1", lambda pair: Edit(pair.real).forget("agg_round", "variance")),
    "evaluations are not written": ("TC1", lambda pair: _both(pair, lambda edit: edit.drop("agg_eval"))),
    "lateness is not written": ("TC1", lambda pair: Edit(pair.real).drop("lateness")),
    "bytes are not counted": ("TC1", lambda pair: Edit(pair.sim).drop("comm")),
    "no virtual clock at all": ("TC1", lambda pair: Edit(pair.sim).forget("agg_round", "vclock_ns")),
    "the virtual clock falls": ("K1", lambda pair: Edit(pair.sim).set("agg_round", cycle_is(7), vclock_ns=5)),
    "the virtual clock stands still": ("K7", lambda pair: Edit(pair.sim).set("agg_round", vclock_ns=0)),
    "the sim sleeps": ("Sp", lambda pair: Edit(pair.sim).verdict(wall_s=31.0)),
    "one trainer is faster in the sim": ("P3", _faster),
    "the sim takes longer to decode": ("Tph", lambda pair: Edit(pair.sim).each("trainer_round", taking("decode", 0.02))),
    "values go to the device more slowly": ("Tph", lambda pair: Edit(pair.sim).each("trainer_round", taking("to_device", 0.02))),
    "updates are late": ("Lt", lambda pair: Edit(pair.real).set("lateness", lambda record: record["id"] % 4 == 0, late_s=0.4)),
    "an update is later than the grace": ("Lt", lambda pair: Edit(pair.real).set("lateness", _id(11), late_s=16.0)),
    "another pool to choose from": ("S34", lambda pair: Edit(pair.sim).set("selection", cycle_is(3), eligible_fp="x")),
    "somebody else is chosen": ("S34", lambda pair: Edit(pair.sim).set("selection", cycle_is(3), chosen=["t0", "t1", "t2", "t2"])),
    "one selection is missing": ("A2", lambda pair: Edit(pair.real).drop("selection", cycle_is(3))),
    "more in flight than C": ("S34", lambda pair: Edit(pair.sim).set("dispatch", _id(16), in_flight=5)),
    "a trainer is dispatched twice": ("R1", _double_dispatch),
    "an id is dispatched twice": ("R1", _dispatch_same_id_twice),
    "a dispatch before its slot is free": ("R1", _dispatch_too_early),
    "a due is shifted by a nanosecond": ("K6", _shift_due),
    "a member's stamp is shifted by a nanosecond": ("K6", _shift_member),
    "an update has another stamp than its assign": ("K6", lambda pair: Edit(pair.sim).set("accepted", _id(9), interval_ns=[0, 1])),
    "an update echoes another assign": ("K6", lambda pair: Edit(pair.real).set("task_send", _id(9), id=999)),
    "an update of somebody else": ("K6", _foreign_trainer),
    "an accept is not written": ("U4", _drop_update),
    "an update is lost": ("U4", _lose_update),
    "an update counts in two cycles": ("U4", _count_twice),
    "an update is refused and taken": ("U4", _reject_and_take),
    "a cycle closes one short": ("U4", _one_short),
    "two commits change places": ("L1", _swap_commits),
    "a commit order is reversed": ("U5", lambda pair: Edit(pair.real).each("agg_round", lambda r: r["cohort"].reverse(), cycle_is(8))),
    "a model digest differs": ("L1", lambda pair: Edit(pair.sim).set("agg_round", cycle_is(11), model="x")),
    "a variance differs in the last bit": ("L1", _last_bit),
    "a keep where the other commits": ("L1", _kept),
    "forced where the other is natural": ("L1", _forced),
    "a rate differs": ("L1", lambda pair: Edit(pair.sim).each("agg_round", lambda r: r["cohort"][1].update(rate=0.5), cycle_is(2))),
    "C in force differs in a cycle": ("L1", lambda pair: Edit(pair.sim).set("agg_round", cycle_is(6), concurrency=5)),
    "a cycle is missing at the end": ("L1", lambda pair: Edit(pair.sim).drop("agg_round", cycle_is(11))),
    "a byte too many": ("Cm", _byte_more),
    "full weights where none were due": ("Cm", lambda pair: Edit(pair.real).set("comm", lambda r: r["payload"] == "none", payload="full")),
    "a message is counted twice": ("Cm", lambda pair: Edit(pair.real).repeat("comm", lambda r: r["id"] == 9 and r["direction"] == "up")),
    "an accuracy differs": ("C1", lambda pair: Edit(pair.sim).set("agg_eval", lambda r: r["version"] == 3, accuracy=0.1)),
    "an evaluation is missing": ("C1", lambda pair: Edit(pair.sim).drop("agg_eval", lambda r: r["version"] == 2)),
    "a loss differs": ("C2", lambda pair: Edit(pair.sim).set("agg_eval", lambda r: r["version"] == 3, loss=0.1)),
    "the wall ceiling was hit": ("K5", lambda pair: Edit(pair.sim).verdict(verdict="WALL_CEILING")),
    **spoils.MUTATIONS,
}  # fmt: skip


@pytest.mark.parametrize("name", MUTATIONS)
def test_the_intended_rung_is_the_root_cause(name: str, good: RunPair, judge: Callable[..., Report]) -> None:
    _assert_root_cause(*MUTATIONS[name], good, judge)


@pytest.mark.parametrize("name", spoils.AWAY_MUTATIONS)
def test_so_it_is_where_trainers_are_away_at_times(name: str, tmp_path: Path, judge: Callable[..., Report]) -> None:
    _assert_root_cause(*spoils.AWAY_MUTATIONS[name], spoils.away(tmp_path), judge)


def _assert_root_cause(rung: str, spoil: Spoil, pair: RunPair, judge: Callable[..., Report]) -> None:
    spoil(pair)
    report = judge(pair)
    roots = [result.rung.id for result in report.results if result.role == "ROOT-CAUSE"]
    assert rung in roots, [(result.rung.id, result.verdict, result.reason) for result in report.results if result.verdict != "PASS"]
    assert roots[0] == rung
    assert report.exit_code == 1


def test_there_are_forty_of_them() -> None:
    assert len(MUTATIONS) >= 40
