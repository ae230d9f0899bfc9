"""One run's costs over its curve, against sums over its records."""

from collections.abc import Callable

import pytest

from flame.analysis.learned import NOTHING, Learned
from flame.analysis.productivity import cost_to, productivity, ratio
from flame.config import Condition, World
from flame.launch.run import run as run_flame
from flame.telemetry.rundir import RunDir
from tests.analysis.conftest import AWAY, PLAIN, records


@pytest.mark.parametrize("changes", [{}, AWAY])
def test_each_evaluation_has_what_the_records_sum_up_to(simulate: Callable[..., RunDir], changes: dict[str, object]) -> None:
    run = simulate(**changes)
    assigns = {each["id"]: each for each in records(run.path, "dispatch")}
    jobs, comm = records(run.path, "trainer_round"), records(run.path, "comm")
    closes = {each["at"]["model_version"] + 1: each for each in records(run.path, "agg_round") if each["committed"]}
    table = Learned(run).curve
    assert table.height == len(records(run.path, "agg_eval")) > 4
    for row in table.iter_rows(named=True):
        at = row["stamp_ns"]
        done = [job for job in jobs if assigns[job["id"]]["due_ns"] <= at]
        down = [each for each in comm if each["direction"] == "down" and assigns[each["id"]]["stamp_ns"] <= at]
        up = [each for each in comm if each["direction"] == "up" and assigns[each["id"]]["due_ns"] <= at]
        sums = tuple(sum(each["message_bytes"] for each in way) for way in (down, up))
        assert row["passes"] == sum(job["passes"] for job in done)
        assert (row["down_bytes"], row["up_bytes"], row["bytes"]) == (*sums, sum(sums))
        assert row["compute_s"] == pytest.approx(sum(job["phases"]["compute"] for job in done))
        assert (row["commits"], row["time_s"]) == (row["version"], pytest.approx(at / 1e9))
        assert (row["uploads"], row["wall_s"]) == (closes[row["version"]]["accepts"], closes[row["version"]]["wall_s"])


def test_the_curve_agrees_with_what_was_spent_by_then(plain: Learned) -> None:
    for row in plain.curve.iter_rows(named=True):
        spent = plain.spent(row["stamp_ns"])
        assert (spent.passes, spent.down, spent.up) == (row["passes"], row["down_bytes"], row["up_bytes"])
        assert spent.compute_s == pytest.approx(row["compute_s"])


def test_laps_end_where_the_round_changes(simulate: Callable[..., RunDir]) -> None:
    learned = Learned(simulate(max_bins=3, stop={"commits": 10}))
    commits = [each for each in records(learned.run.path, "agg_round") if each["committed"]]
    ends = [(one["at"]["round"], one["at"]["model_version"] + 1, one["stamp_ns"] / 1e9) for one in commits[2::3]]
    assert len(ends) == 3
    assert learned.laps.select("lap", "commits", "time_s").rows() == [(lap, commits, pytest.approx(at)) for lap, commits, at in ends]


def test_without_full_telemetry_costs_are_absent_and_not_zero(tmp_path_factory: pytest.TempPathFactory) -> None:
    condition = Condition.model_validate(PLAIN | {"stop": {"cycles": 8}})
    low = Learned(RunDir(run_flame(condition, World(level="summary"), runs=tmp_path_factory.mktemp("low")).path))
    assert low.curve.height
    for name in ("passes", "down_bytes", "up_bytes", "bytes", "compute_s"):
        assert low.curve[name].null_count() == low.curve.height
    assert low.spent() == NOTHING
    assert low.curve["uploads"].null_count() == 0
    gain = productivity(low)
    assert (gain.per_million_passes, gain.per_gb, gain.per_compute_h) == (None, None, None)
    assert gain.loss_drop is not None


def test_productivity_is_the_drop_over_all_that_was_spent(plain: Learned) -> None:
    jobs, comm = (records(plain.run.path, kind) for kind in ("trainer_round", "comm"))
    within = {each["id"] for each in records(plain.run.path, "dispatch") if each["due_ns"] <= plain.end}
    passes = sum(job["passes"] for job in jobs if job["id"] in within)
    hours = sum(job["phases"]["compute"] for job in jobs if job["id"] in within) / 3600
    late = [each for each in comm if each["direction"] == "up" and each["id"] not in within]
    total = sum(each["message_bytes"] for each in comm) - sum(each["message_bytes"] for each in late)
    gain = productivity(plain, 3)
    losses = plain.evaluations["loss"].to_list()
    drop = sum(losses[:3]) / 3 - sum(losses[-3:]) / 3
    assert gain.loss_drop == pytest.approx(drop)
    assert gain.per_million_passes == pytest.approx(drop / passes * 1e6)
    assert gain.per_gb == pytest.approx(drop / total * 1e9)
    assert gain.per_compute_h == pytest.approx(drop / hours)
    assert gain.device == "cpu"


def test_a_ratio_of_nothing_is_absent() -> None:
    assert [ratio(1.0, 0), ratio(None, 2), ratio(1.0, None), ratio(3.0, 2)] == [None, None, None, 1.5]


def test_a_target_that_was_never_reached_has_no_cost(plain: Learned) -> None:
    accuracy = max(plain.evaluations["accuracy"])
    near, never = cost_to(plain, [accuracy, 1.01]).rows(named=True)
    assert near["passes"] == plain.spent(plain.reached(accuracy)).passes > 0
    assert list(never.values()) == [1.01, None, None, None, None]
