"""K and C that change, in whole simulated runs; and what is the same as if they couldn't."""

from pathlib import Path
from typing import Any

import pytest

import flame
from flame.config import Condition
from flame.launch.run import Run
from flame.policies.sizes import SizesView
from flame.runtime.books.replay import replay
from flame.telemetry.records import AggRound
from tests.stage import Stage
from tests.stage import condition as stage_condition

TOY: dict[str, Any] = {
    "trainers": 9, "goal": 2, "concurrency": 4, "delays": {"values": [1, 1.5, 2, 3]}, "select": "random",
    "server_opt": {"type": "sgd", "lr": 0.3}, "stop": {"cycles": 40},
    "commit": [{"type": "variance", "threshold": 0.02}, {"type": "cap", "max": 9}],
}  # fmt: skip
TRACKING = {"type": "var_tracking", "target": 3, "step": 2, "window": 2, "goal_min": 1, "goal_max": 6}
LOOPS: dict[str, dict[str, Any]] = {
    "async": {"loop": "async"}, "exact": {"loop": "sync", "staleness": "exact"}, "same_bin": {"loop": "sync", "staleness": "same_bin"},
}  # fmt: skip


def run(runs: Path, **changes: Any) -> Run:
    return flame.run(Condition.model_validate(TOY | changes), runs=runs)  # type: ignore[attr-defined, no-any-return]


def journal(done: Run) -> bytes:
    """Without the header, which names the run."""
    return (done.path / "journal" / "sim-1.jsonl").read_bytes().split(b"\n", 1)[1]


@pytest.mark.parametrize("loop", LOOPS)
def test_the_off_value_and_the_absent_key_give_the_same_journal(loop: str, tmp_path: Path) -> None:
    """Both ways to write it; and a rule whose bounds leave nothing to move is the same too."""
    fixed = {"sizes": {"type": "var_tracking", "goal_min": 2, "goal_max": 2}}
    runs = [{}, {"sizes": "static"}, {"sizes": {"type": "static"}}, fixed]
    journals = [journal(run(tmp_path / str(number), **LOOPS[loop], **off)) for number, off in enumerate(runs)]
    assert journals[0] == journals[1] == journals[2] == journals[3]
    assert journals[0] != journal(run(tmp_path / "on", **LOOPS[loop], sizes=TRACKING))


@pytest.mark.parametrize("loop", LOOPS)
def test_k_and_c_of_every_cycle_follow_from_the_closes_before_it(loop: str, tmp_path: Path) -> None:
    """The policy, fed with what the records say of the pool, gives the sizes that the records say."""
    done = run(tmp_path, **LOOPS[loop], sizes=TRACKING)
    condition = Condition.model_validate(TOY | LOOPS[loop] | {"sizes": TRACKING})
    rounds, state, pooled, committed = done.frame("agg_round").sort("_seq"), None, 0, False
    for goal, concurrency, pool, reason in rounds.select("goal", "concurrency", "pool", "reason").iter_rows():
        sizes, state = condition.sizes.sample(SizesView(condition.start, 9, pooled, committed), state)  # type: ignore[arg-type]
        assert sizes == (goal, concurrency)
        pooled, committed = pool, reason != "keep"
    assert rounds["goal"].n_unique() > 2
    assert done.verdict == "COMPLETED", done.reason


@pytest.mark.parametrize("loop", LOOPS)
def test_nothing_in_flight_is_taken_back_and_nothing_is_dispatched_over_c(loop: str, tmp_path: Path) -> None:
    done = run(tmp_path, **LOOPS[loop], sizes=TRACKING)
    in_force = dict(done.frame("selection").select("cycle", "concurrency").iter_rows())
    assert all(held <= in_force[cycle] for cycle, held in done.frame("dispatch").select("cycle", "in_flight").iter_rows())
    ended = set(done.frame("accepted")["id"])
    last = done.frame("agg_round")["stamp_ns"].max()
    due = dict(done.frame("dispatch").select("id", "due_ns").iter_rows())
    assert {number for number, at in due.items() if at < last} <= ended


@pytest.mark.parametrize("loop", LOOPS)
def test_a_run_whose_sizes_change_replays_byte_for_byte(loop: str, tmp_path: Path) -> None:
    reports = replay(run(tmp_path, **LOOPS[loop], sizes=TRACKING).path)
    assert [(each.node, each.difference, each.skipped) for each in reports if each.difference or each.skipped] == []


def test_what_a_fallen_c_leaves_in_flight_starves_nobody() -> None:
    """K, C fall from 20, 40 to 1, 2 at the first close: 20 answers are out, all too old, and 10 C is 20."""
    falling = {"type": "var_tracking", "target": 20, "step": 19, "goal_min": 1, "goal_max": 20}
    stage = Stage(stage_condition(trainers=40, goal=20, concurrency=40, delays={"values": [1.0]}, staleness="exact", sizes=falling))
    stage.start()
    heard = [stage.answer(number) for number in range(1, 41)]
    assert [(each.goal, each.concurrency) for step in heard for each in step.records(AggRound)] == [(20, 40)]
    assert (stage.machine.cycle.concurrency, stage.machine.rejects) == (2, 20)
    assert [step.stop for step in heard] == [None] * 40
    assert stage.answer(41).records(AggRound)[0].goal == 1
