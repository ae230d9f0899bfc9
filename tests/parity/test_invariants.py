"""Every law holds in a good run and is broken by the run that was spoiled for it."""

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest

from flame.config import Condition
from flame.core.progress import Progress
from flame.core.time import SECOND
from flame.telemetry.records import RunEnd
from flame.telemetry.rundir import RunDir
from parity.invariants.check import LAWS, Ruling, check_run, used
from tests.parity.edits import Edit, Line, cycle_is
from tests.parity.fixtures import asynchronous, away, condition, fidelity, write_run

Spoil = Callable[[Edit], None]

AWAY = ("belief", "withheld")
"""Laws that look at something only where trainers are away at times."""


def without(number: int) -> Callable[[Line], None]:
    """A close without that member."""
    return lambda record: record.update(cohort=[member for member in record["cohort"] if member["id"] != number])


def ground(law: str, folder: Path) -> RunDir:
    """A good run at which that law looks."""
    return write_run(folder, away() if law in AWAY else condition(), "sim")


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
    "belief": lambda edit: edit.stored(lambda stored: stored["condition"]["availability"].update(trace="syn_50")),
    "withheld": lambda edit: edit.drop("withheld"),
    "alternation": lambda edit: edit.drop("task_send", lambda record: record["id"] == 9),
    "punctual": lambda edit: edit.each("task_send", lambda record: record.update(stamp_ns=record["stamp_ns"] + 1)),
    "answers": lambda edit: edit.drop("task_send", lambda record: record["id"] == 9),
    "lost": lambda edit: edit.drop("accepted", lambda record: record["id"] == 9) or edit.each("agg_round", without(9)),
    "rolled_up": lambda edit: edit.each("agg_round", lambda record: record["cohort"][0].update(staleness=1e-8), cycle_is(4)),
    "counts": lambda edit: edit.set("agg_round", cycle_is(4), accepts=1),
    "staleness": lambda edit: edit.set("accepted", lambda record: record["id"] == 9, staleness=-1),
    "evaluations": lambda edit: edit.set("agg_eval", lambda record: record["version"] == 2, loss=None),
    "budget": lambda edit: edit.verdict(cycles=3, reason=""),
    "gaps": lambda edit: edit.each("agg_round", lambda record: record.update(wall_s=record["wall_s"] + 500), cycle_is(11)),
    "ceiling": lambda edit: edit.verdict(verdict="WALL_CEILING"),
}


def _ruling(run: RunDir, law: str) -> Ruling:
    return next(ruling for ruling in check_run(RunDir(run.path)) if ruling.law.name == law)


@pytest.mark.parametrize("made", [condition, asynchronous, away, fidelity])
@pytest.mark.parametrize("kind", ["real", "sim"])
def test_every_law_holds_in_a_good_run(kind: Literal["real", "sim"], made: Callable[[], Condition], tmp_path: Path) -> None:
    chosen = made()
    rulings = check_run(write_run(tmp_path, chosen, kind, noise=None if chosen.tier == "exact" else 1))
    assert [(ruling.law.name, ruling.look.faults, ruling.broke) for ruling in rulings if ruling.holds is False or ruling.broke] == []
    unseen = {ruling.law.name for ruling in rulings if ruling.holds is None}
    assert unseen == ({"vclock"} if kind == "real" else set()) | (set() if made is away else set(AWAY))


@pytest.mark.parametrize("law", [law.name for law in LAWS])
def test_every_law_is_broken_by_the_run_that_was_spoiled_for_it(law: str, tmp_path: Path) -> None:
    run = ground(law, tmp_path)
    assert _ruling(run, law).holds
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


# ---- sends


def _move(run: RunDir, number: int, seconds: float) -> None:
    """An update is sent so much later."""

    def change(lines: list[Line]) -> list[Line]:
        for line in lines:
            if line["record"]["kind"] == "task_send" and line["record"]["id"] <= number:
                line["t_ns"] += round(seconds * SECOND)
        return lines

    Edit(run).lines(change)


@pytest.mark.parametrize(("seconds", "how"), [(-0.06, "0.057 s before it was due"), (0.06, "0.063 s after it could be")])
def test_a_real_send_is_neither_early_nor_late_by_more_than_the_jitter(seconds: float, how: str, tmp_path: Path) -> None:
    run = write_run(tmp_path, condition(), "real")
    _move(run, 5, seconds)
    faults = _ruling(run, "punctual").look.faults
    assert len(faults) == 5
    assert faults[0] == f"`t0` sent id 1 {how}"


@pytest.mark.parametrize("seconds", [-0.04, 0.04])
def test_a_jitter_is_no_fault_of_a_real_send(seconds: float, tmp_path: Path) -> None:
    run = write_run(tmp_path, condition(), "real")
    _move(run, 48, seconds)
    assert _ruling(run, "punctual").holds


def test_one_late_send_of_many_may_be_a_lost_core_and_a_sim_has_none(tmp_path: Path) -> None:
    real, sim = (write_run(tmp_path, condition(), kind) for kind in ("real", "sim"))  # type: ignore[arg-type]
    for run in (real, sim):
        _move(run, 1, 0.2)
    assert _ruling(real, "punctual").holds
    assert _ruling(sim, "punctual").look.faults == ["id 1 was sent at 1.200000000, due at 1.000000000"]


def test_a_send_is_late_by_when_its_computing_ended(tmp_path: Path) -> None:
    run = write_run(tmp_path, condition(), "real")
    _move(run, 48, 0.5)
    Edit(run).each("trainer_round", lambda record: record.update(phases={"queue": 0.0, "compute": record["delay_ns"] / SECOND + 0.49}))
    assert _ruling(run, "punctual").holds


def test_an_assign_that_was_sent_again_has_no_send_slack(tmp_path: Path) -> None:
    run = write_run(tmp_path, condition(), "real")
    _move(run, 5, 3.0)
    Edit(run).repeat("comm", lambda record: record["id"] <= 5 and record["direction"] == "down", payload="resend")
    ruling = _ruling(run, "punctual")
    assert (ruling.holds, ruling.look.n) == (True, 43)


@pytest.mark.parametrize("made", [condition, fidelity])
def test_a_sent_update_that_nobody_released_is_lost(made: Callable[[], Condition], tmp_path: Path) -> None:
    chosen = made()
    run = write_run(tmp_path, chosen, "real", noise=None if chosen.tier == "exact" else 1)
    BROKEN["lost"](Edit(run))
    faults = _ruling(run, "lost").look.faults
    assert len(faults) == 1
    assert "id 9 of" in faults[0]


def test_the_last_update_of_a_trainer_may_be_on_its_way(tmp_path: Path) -> None:
    run = write_run(tmp_path, condition(), "sim")
    Edit(run).drop("accepted", lambda record: record["id"] == 48)
    Edit(run).each("agg_round", without(48))
    assert _ruling(run, "lost").holds


@pytest.mark.parametrize(
    ("spoil", "fault"),
    [
        (lambda edit: edit.repeat("task_send", lambda record: record["id"] == 9), "has 2 task_send records of id 9"),
        (lambda edit: edit.repeat("trainer_round", lambda record: record["id"] == 9), "has 2 trainer_round records of id 9"),
        (lambda edit: edit.each("agg_round", lambda r: r["cohort"].append(dict(r["cohort"][0])), cycle_is(4)), "was committed 2 times"),
    ],
)
def test_an_assign_is_answered_and_committed_once(spoil: Spoil, fault: str, tmp_path: Path) -> None:
    run = write_run(tmp_path, condition(), "sim")
    spoil(Edit(run))
    assert fault in _ruling(run, "once").look.faults[0]


def test_a_respawned_worker_may_answer_again(tmp_path: Path) -> None:
    run = write_run(tmp_path, condition(), "real")
    Edit(run).repeat("task_send", lambda record: record["id"] == 9)

    def respawned(lines: list[Line]) -> list[Line]:
        same = [line for line in lines if line["record"]["kind"] == "task_send" and line["record"]["id"] == 9]
        if same:
            same[-1]["incarnation"] = "2"
        return lines

    Edit(run).lines(respawned)
    assert _ruling(run, "once").holds


@pytest.mark.parametrize(
    ("spoil", "fault"),
    [
        (lambda edit: edit.set("accepted", lambda record: record["id"] == 17, rate=1.0 + 1e-8), "cycle 4 has rate 1.0"),
        (lambda edit: edit.set("agg_round", cycle_is(4), gated=1), "cycle 4 has gated 1, its accepts 0"),
        (lambda edit: edit.set("run_end", accepts=47), "run_end counts 47 accepts, 48 were written"),
        (lambda edit: edit.verdict(accepts=47), "the verdict counts 47 accepts, 48 were written"),
        (lambda edit: edit.verdict(commits=7), "the verdict counts 7 commits"),
        (lambda edit: edit.verdict(sim_rate=49.999999), "the verdict's sim_rate is 49.999999"),
        (lambda edit: edit.set("trainer_round", lambda record: record["id"] == 9, passes=3), "counts 6 passes with id 9, its jobs took 7"),
    ],
)
def test_what_is_rolled_up_is_what_was_written(spoil: Spoil, fault: str, tmp_path: Path) -> None:
    run = write_run(tmp_path, condition(), "sim")
    spoil(Edit(run))
    assert fault in _ruling(run, "rolled_up").look.faults[0]


def test_a_law_that_breaks_is_told_and_is_no_pass(tmp_path: Path) -> None:
    run = write_run(tmp_path, condition(), "sim")
    Edit(run).forget("agg_round", "cohort")
    broke = [ruling for ruling in check_run(RunDir(run.path)) if ruling.broke]
    assert broke
    assert all(ruling.holds is None for ruling in broke)
