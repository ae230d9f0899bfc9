"""The plugin's fixture runs both worlds, and fails with the report where the ladder does."""

from pathlib import Path
from subprocess import run as execute
from sys import executable
from types import SimpleNamespace
from typing import Any

import pytest

from flame.config import Condition, World
from flame.pytest_parity import Ladder
from tests.parity.edits import Edit, cycle_is
from tests.parity.fixtures import condition, write_run

pytest_plugins = ["flame.pytest_parity"]


@pytest.fixture
def carried(monkeypatch: pytest.MonkeyPatch) -> list[World]:
    """Runs are synthetic; the worlds in which they were carried out."""
    worlds: list[World] = []

    def run(chosen: Condition, world: World, *, run_set: str, runs: Path) -> Any:
        worlds.append(world)
        return SimpleNamespace(path=write_run(runs, chosen, world.kind, run_set=run_set).path)

    monkeypatch.setattr("flame.launch.run.run", run)
    return worlds


def test_a_good_pair_is_run_in_both_worlds_and_reported(carried: list[World], parity_ladder: Ladder) -> None:
    report = parity_ladder(condition().model_dump(mode="json"), sim={"wire": "roundtrip"})
    assert report.of("L1").verdict == "PASS"
    assert [(world.kind, world.wire) for world in carried] == [("real", "reference"), ("sim", "roundtrip")]


@pytest.mark.usefixtures("carried")
def test_a_pair_that_differs_fails_the_test_with_its_report(parity_ladder: Ladder, monkeypatch: pytest.MonkeyPatch) -> None:
    from flame.launch import run as launched

    good = launched.run

    def spoiled(chosen: Condition, world: World, **where: Any) -> Any:
        made = good(chosen, world, **where)
        if world.kind == "sim":
            Edit(made).set("agg_round", cycle_is(5), model="x")
        return made

    monkeypatch.setattr(launched, "run", spoiled)
    with pytest.raises(pytest.fail.Exception) as failure:
        parity_ladder(condition())
    assert "cohort_sequence" in str(failure.value)
    assert "first at cycle 5" in str(failure.value)


@pytest.mark.usefixtures("carried")
def test_options_are_the_ladders(parity_ladder: Ladder) -> None:
    assert parity_ladder(condition(), max_bin=1).window.bins == 2


def test_it_is_loaded_by_name_and_says_its_option() -> None:
    done = execute([executable, "-m", "pytest", "-p", "flame.pytest_parity", "--help"], capture_output=True, text=True, check=True)
    assert "--parity-runs" in done.stdout
