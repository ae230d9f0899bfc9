"""The table of efficiency: its sums by another way, its windows by hand."""

from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest

from bench.efficiency import cells, main, number, table
from flame.analysis.learned import Learned
from flame.config import Condition, World
from flame.launch.run import run as run_flame
from flame.telemetry.rundir import RunDir
from tests.parity.fixtures import asynchronous, write_pair


def lines(run: Path, kind: str) -> list[dict[str, Any]]:
    """The records of a kind, read as JSON."""
    found = [orjson.loads(line)["record"] for file in (run / "telemetry").glob("*.jsonl") for line in file.read_bytes().splitlines()]
    return [record for record in found if record["kind"] == kind]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    condition = Condition.model_validate(
        {
            "trainers": 6, "goal": 2, "concurrency": 4, "loop": "async", "select": "random", "commit": ["agg_goal"],
            "perturb": {"type": "mean_of", "probes": 3}, "delays": {"values": [1, 2, 3.5]}, "stop": {"cycles": 25},
            "server_opt": {"type": "sgd", "lr": 0.3},
        }
    )  # fmt: skip
    return run_flame(condition, "sim", runs=tmp_path_factory.mktemp("runs")).path


def test_what_was_spent_is_the_sum_over_the_records_up_to_the_instant(run: Path) -> None:
    learned = Learned(RunDir(run))
    assigns = {each["id"]: each for each in lines(run, "dispatch")}
    for until in (0, learned.end // 3, learned.end):
        spent = learned.spent(until)
        jobs = [job for job in lines(run, "trainer_round") if assigns[job["id"]]["due_ns"] <= until]
        comm = lines(run, "comm")
        down = [each for each in comm if each["direction"] == "down" and assigns[each["id"]]["stamp_ns"] <= until]
        up = [each for each in comm if each["direction"] == "up" and assigns[each["id"]]["due_ns"] <= until]
        assert spent.passes == sum(job["passes"] for job in jobs) == 3 * len(jobs)
        assert (spent.down, spent.up) == tuple(sum(each["message_bytes"] for each in way) for way in (down, up))
    assert learned.spent() == learned.spent(learned.end)
    assert learned.end == max(each["stamp_ns"] for each in lines(run, "agg_round"))


def with_curve(run: Path, accuracies: list[float | None], losses: list[float | None] | None = None) -> Learned:
    """The run with another curve: an evaluation a second, one in five commits."""
    learned, stamps = Learned(RunDir(run)), [10**9 * number for number in range(len(accuracies))]
    versions = [5 * (number + 1) for number in range(len(accuracies))]
    learned.evaluations = pl.DataFrame(
        {"accuracy": accuracies, "loss": losses or accuracies, "stamp_ns": stamps, "version": versions},
        schema={"accuracy": pl.Float64, "loss": pl.Float64, "stamp_ns": pl.Int64, "version": pl.Int64},
    )
    return learned


def test_windows_by_hand(run: Path) -> None:
    learned = with_curve(run, [0.1, 0.5, 0.4, 0.6, 0.2], [2.0, 1.0, 9.0, 0.5, 0.25])
    assert learned.reached(0.5) == 10**9
    assert learned.reached(0.55) == 3 * 10**9
    assert learned.reached(0.61) is None
    assert learned.sustained() == pytest.approx((0.6 + 0.2) / 2)
    assert learned.loss_drop(1) == 1.75
    assert learned.loss_drop(2) == learned.loss_drop(10) == 1.5 - 0.375
    assert with_curve(run, [0.0] * 51 + [1.0] * 19).sustained() == 0.95


@pytest.mark.parametrize("curve", [[], [0.5]])
def test_a_curve_too_short_has_no_drop(run: Path, curve: list[float | None]) -> None:
    row = dict(cells(with_curve(run, curve), [0.6], 10))
    assert (row["loss drop"], row["per GB"], row["per 10^6 passes"], row["s to 0.6"], row["MB to 0.6"]) == ("-",) * 5


def test_a_loss_that_is_not_finite_gives_no_drop(run: Path) -> None:
    assert with_curve(run, [0.5, 0.5, 0.5, 0.5], [1.0, 1.0, None, 1.0]).loss_drop(2) is None
    assert with_curve(run, [0.5, None]).sustained() is None


def test_ratios_are_of_the_whole_run(run: Path) -> None:
    learned = with_curve(run, [0.5, 0.5], [3.0, 1.0])
    row, spent = dict(cells(learned, [], 10)), learned.spent()
    assert spent.passes is not None
    assert spent.both is not None
    assert row["per 10^6 passes"] == number(2e6 / spent.passes)
    assert row["per GB"] == number(2e9 / spent.both)


def test_both_runs_of_a_pair_have_equal_rows(tmp_path: Path) -> None:
    pair = write_pair(tmp_path, asynchronous())
    rows = [dict(cells(Learned(side), [0.3], 3)) | {"run": ""} for side in (pair.real, pair.sim)]
    assert rows[0] == rows[1]
    assert rows[0]["passes"] != "-"


def test_costs_are_absent_where_the_level_leaves_them_out(tmp_path: Path) -> None:
    condition = Condition.model_validate({"trainers": 3, "goal": 3, "concurrency": 3, "commit": ["agg_goal"], "stop": {"cycles": 4}})
    low = run_flame(condition, World(level="summary"), runs=tmp_path)
    row = dict(cells(Learned(RunDir(low.path)), [0.01], 10))
    assert (row["passes"], row["MB up"], row["per GB"], row["commits"], row["K"]) == ("-", "-", "-", "4", "3")
    assert "-" not in (row["first"], row["s to 0.01"])


def test_the_command_prints_one_row_a_run_and_refuses_what_is_none(run: Path, tmp_path: Path) -> None:
    said: list[str] = []
    assert main([str(run), str(run), "--to", "0.2", "--to", "0.3"], said.append) == 0
    rows = said[0].splitlines()
    assert len(rows) == 4
    assert len({row.count("|") for row in rows}) == 1
    assert "| s to 0.3 | passes to 0.3 | MB to 0.3 |" in rows[0]
    assert main([str(tmp_path)], said.append) == 2
    assert "no run directory" in said[1]


def test_numbers_keep_four_digits() -> None:
    assert [number(value) for value in (None, 0, 0.012345, 12.5, 123456.7)] == ["-", "0", "0.01235", "12.5", "123457"]
    assert table([[("run", "a"), ("K", "1"), ("verdict", "x")]]).splitlines() == [
        "| run | K | verdict |", "| --- | ---: | --- |", "| a | 1 | x |",
    ]  # fmt: skip
