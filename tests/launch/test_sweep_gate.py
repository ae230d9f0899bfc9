"""Before a sweep starts: what stands in its way is said once, for the points concerned, and how many fit is measured."""

import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import orjson
import pytest

from flame.config import Condition
from flame.config.condition import Condition as Whole
from flame.config.experiments import load
from flame.config.world import World
from flame.launch.preflight import findings, measure
from flame.launch.preflight.measure import Machine, Measured
from flame.launch.preflight.plan import Plan
from flame.launch.run import run
from flame.launch.sweeping.arm import Order
from flame.launch.sweeping.arms import Arm
from flame.launch.sweeping.gate import BOOKS_BYTES, Findings, examine
from flame.telemetry.rundir import RunDir
from tests.launch.conftest import Flame

UNGATED: dict[str, Any] = {"commit": [{"type": "variance", "threshold": 50.0}]}


@pytest.fixture
def swept(sections: dict[str, Any]) -> Callable[..., None]:
    """Give the file a sweep of this block."""

    def put(**block: Any) -> None:
        sections["sweeps"] = {"it": {"run_set": "small", "only": ["plain"], "seeds": [1, 2]} | block}

    return put


def test_what_can_not_work_at_any_point_is_said_once(
    swept: Callable[..., None], sections: dict[str, Any], flame: Flame, tmp_path: Path, begun: list[str]
) -> None:
    sections["run_sets"]["small"] |= {"task": "text", "data": "r8", "partition": {"type": "niid_label"}}
    del sections["run_sets"]["small"]["toy"]
    swept(grid={"server_opt.lr": [0.1, 0.2, 0.3]})
    for rest in ([], ["--force"], ["--dry-run"]):
        done = flame("sweep", "it", *rest)
        assert done.exit_code == 2
        assert done.output.count("data set `r8` isn't in") == 1
        assert "server_opt.lr=0.1," not in done.output
    assert (begun, (tmp_path / "runs").exists()) == ([], False)


def test_what_is_unwise_is_refused_at_the_points_concerned_unless_forced(
    swept: Callable[..., None], flame: Flame, tmp_path: Path, begun: list[str]
) -> None:
    swept(list=[UNGATED, UNGATED | {"goal": 1}, {"goal": 1}])
    refused = flame("sweep", "it")
    assert (refused.exit_code, begun) == (2, [])
    said = " ".join(refused.output.split())
    assert said.count("unwise") == 1
    assert (
        "a bin that never agrees goes on for ever (at commit=variance(threshold 50.0), commit=variance(threshold 50.0) goal=1); add" in said
    )
    assert flame("sweep", "it", "--dry-run").exit_code == 2
    assert flame("sweep", "it", "--dry-run", "--force").exit_code == 0
    assert (begun, (tmp_path / "runs").exists()) == ([], False)


def test_only_what_is_still_to_be_run_is_looked_at(swept: Callable[..., None], flame: Flame, tmp_path: Path, begun: list[str]) -> None:
    swept(list=[UNGATED, {"goal": 1}])
    flame("sweep", "it", "--dry-run")
    for point, each in load(tmp_path / "experiments.yaml").swept("it"):
        if "commit" in point:
            run(each.condition, runs=tmp_path / "runs", run_set="small")
    done = flame("sweep", "it", "--dry-run")
    assert (done.exit_code, "unwise" in done.output) == (0, False)
    assert "4 simulations: 2 are there, 0 go on, 2 begin" in done.output


def test_a_learner_of_each_shape_is_built_once_and_one_of_each_size_measured(
    swept: Callable[..., None], flame: Flame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    swept(grid={"server_opt.lr": [0.1, 0.2], "batch_size": [4, 8, 16]})
    flame("sweep", "it", "--dry-run")
    built: list[int] = []
    measured: list[int] = []
    attempt, whole = measure.attempt, measure.measure

    def attempting(condition: Whole, **rest: Any) -> Any:
        built.append(condition.batch_size)
        return attempt(condition, **rest)

    def measuring(condition: Whole, **rest: Any) -> Measured:
        measured.append(condition.batch_size)
        return whole(condition, **rest)

    monkeypatch.setattr(measure, "attempt", attempting)
    monkeypatch.setattr(measure, "measure", measuring)
    arms = [Arm(point, each) for point, each in load(tmp_path / "experiments.yaml").swept("it")]
    found = examine(arms, tmp_path / "runs")
    assert (built, measured) == ([4, 8, 16], [4])
    assert found.issues == []
    assert found.machine.needed > 0


LARGE: dict[str, Any] = {"trainers": 40, "concurrency": 20, "toy": {"features": 50_000, "samples": 80}}
GATED = [{"type": "variance", "threshold": 0.3}, {"type": "cap", "max": 6}]


def test_a_sweep_is_as_large_as_its_largest_run_alone(
    swept: Callable[..., None], sections: dict[str, Any], flame: Flame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sections["run_sets"]["small"] |= LARGE
    sections["baselines"]["plain"]["commit"] = GATED
    swept(grid={"goal": [2, 20]}, seeds=[1])
    flame("sweep", "it", "--dry-run")
    arms = [Arm(point, each) for point, each in load(tmp_path / "experiments.yaml").swept("it")]
    plans = [Plan("small", [arm.resolved], [World(kind="sim")], tmp_path / "runs") for arm in arms]
    small, large = (findings.examine(plan) for plan in plans)
    found = examine(arms, tmp_path / "runs")
    assert extra(small.machine) < extra(large.machine) == extra(found.machine), "what this process takes is in both bounds"
    least = large.measured["plain"].holding.least
    assert found.machine.needed > least > 20 * large.measured["plain"].vector
    monkeypatch.setattr(measure, "_available", lambda: (found.machine.most + found.machine.needed) // 2)
    [issue] = examine(arms, tmp_path / "runs").issues
    assert (issue.blocking, issue.what[-13:]) == (False, " (at goal=20)")


def extra(machine: Machine) -> int:
    """What a run may hold beside what it holds in any case."""
    return machine.most - machine.needed


def test_so_many_run_at_once_as_the_measured_size_leaves_room_for() -> None:
    def room(cores: int, available: int, needed: int) -> int:
        return Findings((), Machine(cores, available, needed // 2, needed)).room

    size = 1 << 30
    assert room(8, 4 * (size + BOOKS_BYTES), size) == 4
    assert room(2, 4 * (size + BOOKS_BYTES), size) == 2
    assert room(8, size, 2 * size) == 1
    assert room(8, 4 * (size + BOOKS_BYTES), size // 2) > 4


# ---- the process of one simulation


def ordered(condition: dict[str, Any], runs: Path, path: Path | None = None) -> "subprocess.CompletedProcess[str]":
    whole = Condition.model_validate(condition)
    order = Order(whole.model_dump_json(), World(kind="sim").model_dump_json(), "small", str(runs), str(path) if path else None)
    process = subprocess.Popen(
        [sys.executable, "-m", "flame.launch.sweeping.arm"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdin.write(orjson.dumps(asdict(order)).decode() + "\n")
    process.stdin.flush()
    code = process.wait(120)
    return subprocess.CompletedProcess([], code, process.stdout.read(), process.stderr.read())


SMALL: dict[str, Any] = {"trainers": 4, "goal": 2, "concurrency": 3, "commit": ["agg_goal"], "stop": {"cycles": 4}}


def test_a_simulation_that_can_not_be_is_one_plain_line(tmp_path: Path) -> None:
    done = ordered(SMALL | {"task": "text", "data": "nowhere", "trainers": 3}, tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert "data set `nowhere` isn't in" in done.stderr


def test_one_whose_checkpoint_is_of_other_code_begins_again(tmp_path: Path) -> None:
    cut = run(Condition.model_validate(SMALL), runs=tmp_path, run_set="small").path
    (cut / "verdict.json").write_bytes(orjson.dumps({"verdict": "INTERRUPTED", "reason": "SIGINT"}))
    (cut / "checkpoint").write_bytes(pickle.dumps("another"))
    done = ordered(SMALL, tmp_path, cut)
    assert (done.returncode, done.stdout) == (0, "COMPLETED\n"), done.stderr
    verdicts = [RunDir(path).verdict for path in sorted(tmp_path.iterdir())]
    assert [verdict.verdict for verdict in verdicts if verdict] == ["INTERRUPTED", "COMPLETED"]
