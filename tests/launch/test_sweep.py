"""Sweeps: what is missing is run, what is there isn't, and interruptions lose nothing."""

import signal
import subprocess
import sys
from collections.abc import Callable
from io import StringIO
from itertools import count
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import orjson
import pytest
from rich.console import Console
from typer.testing import CliRunner

from flame.config.errors import ConfigError
from flame.config.experiments import Experiments, load
from flame.config.layers import read_yaml
from flame.config.world import World
from flame.launch.cli import app
from flame.launch.run import make_directory
from flame.launch.sweeping import crew
from flame.launch.sweeping.arms import Arm
from flame.telemetry.rundir import RunDir

REGISTRY = """
baselines:
  one: {loop: async, select: random, perturb: single, commit: [agg_goal], rate: constant, server_opt: {type: sgd, lr: 0.1}}
run_sets:
  small:
    task: toy
    trainers: 6
    goal: 2
    concurrency: 3
    delays: {values: [0.2, 0.3]}
    stop: {cycles: CYCLES}
    baselines: [one]
    seeds: [1]
sweeps:
  steps: {run_set: small, seeds: [1, 2], grid: {server_opt.lr: [0.1, 0.3], goal: [1, 2]}}
  listed: {run_set: small, list: [{goal: 1}, {goal: 2, server_opt: {lr: 0.5}}]}
"""


@pytest.fixture
def registry(tmp_path: Path) -> Callable[[int], Path]:
    """An experiments.yaml whose runs have so many cycles."""

    def write(cycles: int) -> Path:
        file = tmp_path / "experiments.yaml"
        file.write_text(REGISTRY.replace("CYCLES", str(cycles)))
        return file

    return write


def line(file: Path, runs: Path, *rest: str) -> list[str]:
    """`flame sweep steps`, as a process."""
    code = "from flame.launch.cli import main; main()"
    return [sys.executable, "-c", code, "sweep", "steps", "--experiments", str(file), "--runs", str(runs), *rest]


def ends(runs: Path) -> list[str | None]:
    """The verdicts of all that is there, None for none."""
    verdicts = [RunDir(path.parent).verdict for path in sorted(runs.glob("*/condition.json"))]
    return [verdict.verdict if verdict else None for verdict in verdicts]


def wait_for(runs: Path, checkpoints: int) -> None:
    """Until so many runs have a checkpoint; no longer than two minutes."""
    until = monotonic() + 120
    while len(list(runs.glob("*/checkpoint"))) < checkpoints:
        assert monotonic() < until, f"no {checkpoints} checkpoints in {runs} after two minutes"
        sleep(0.02)


def test_a_grid_is_every_combination_and_a_list_is_its_points(registry: Callable[[int], Path]) -> None:
    swept = load(registry(4)).swept("steps")
    assert [(dict(point), each.condition.seed) for point, each in swept] == [
        ({"server_opt.lr": lr, "goal": goal}, seed) for lr in (0.1, 0.3) for goal in (1, 2) for seed in (1, 2)
    ]
    assert all(each.condition.goal == point["goal"] for point, each in swept)
    assert [each.condition.server_opt.lr for _, each in load(registry(4)).swept("listed")] == [0.1, 0.5]  # type: ignore[union-attr]


def test_what_is_there_is_not_run_again(registry: Callable[[int], Path], tmp_path: Path) -> None:
    file, runs = registry(4), tmp_path / "runs"
    first = subprocess.run(line(file, runs), capture_output=True, text=True, timeout=300, check=False)
    assert first.returncode == 0, first.stderr
    assert "8 simulations: 0 are there, 0 go on, 8 begin" in first.stderr
    assert ends(runs) == ["COMPLETED"] * 8
    again = CliRunner().invoke(app, line(file, runs)[3:])
    assert again.exit_code == 0
    assert "8 are there, 0 go on, 0 begin" in again.output
    assert len(ends(runs)) == 8
    assert [row.split()[2:4] for row in again.output.splitlines() if row.startswith(" server_opt")] == [["one", "2/2"]] * 4


def test_interrupted_twice_it_ends_with_each_run_once(registry: Callable[[int], Path], tmp_path: Path) -> None:
    file, runs = registry(1500), tmp_path / "runs"
    for sent, begun in ((signal.SIGINT, 1), (signal.SIGKILL, 3)):
        process = subprocess.Popen(line(file, runs, "--jobs", "2"), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        wait_for(runs, begun)
        process.send_signal(sent)
        _, said = process.communicate(timeout=200)
        assert process.returncode
        if sent == signal.SIGINT:
            assert "run the sweep again to go on" in said
    _settled(runs)
    assert {"INTERRUPTED"} <= set(ends(runs)) <= {"INTERRUPTED", "COMPLETED", None}
    last = subprocess.run(line(file, runs), capture_output=True, text=True, timeout=300, check=False)
    assert last.returncode == 0, last.stderr
    assert ends(runs) == ["COMPLETED"] * 8


def _settled(runs: Path) -> None:
    """The simulations of a sweep that was killed have noticed it, no later than a minute after."""
    until = monotonic() + 60
    while None in ends(runs) and monotonic() < until:
        sleep(0.05)


def test_a_second_signal_waits_for_nobody(registry: Callable[[int], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []
    screen, popen, looks = StringIO(), subprocess.Popen, count()

    def stubborn(line: list[str], **rest: Any) -> subprocess.Popen[bytes]:
        started.append(popen([sys.executable, "-c", "import time; time.sleep(300)"], **rest))
        return started[-1]

    def look(seconds: float) -> None:
        number = next(looks)
        assert number < 1_000, "it is still waited for"
        assert number > 1 or [process.poll() for process in started] == [None, None], "one signal kills nobody"
        if number < 2:
            signal.raise_signal(signal.SIGINT)
        sleep(0.01)

    monkeypatch.setattr(subprocess, "Popen", stubborn)
    monkeypatch.setattr(crew, "sleep", look)
    monkeypatch.setattr(crew, "monotonic", lambda: 0.0)
    arms = [Arm(point, each) for point, each in load(registry(4)).swept("steps")]
    try:
        crew.Crew(tmp_path, Console(file=screen, width=200)).carry_out(arms, 2)
        assert [process.returncode for process in started] == [-signal.SIGKILL] * 2
    finally:
        for process in started:
            process.kill()
    said = screen.getvalue().splitlines()
    assert said[0] == "SIGINT: waiting for 2 simulations to end in order; run the sweep again to go on"
    assert said[1] == "SIGINT: 2 simulations killed; run the sweep again to go on"


def test_what_somebody_else_runs_is_left_to_them(registry: Callable[[int], Path], tmp_path: Path) -> None:
    file, runs = registry(4), tmp_path / "runs"
    theirs = make_directory(runs, "small", load(file).swept("steps")[0][1].condition, World(kind="sim"))
    done = CliRunner().invoke(app, line(file, runs)[3:])
    assert "8 simulations: 0 are there, 0 go on, 7 begin, 1 is being run by somebody else" in done.output
    assert (done.exit_code, ends(runs)) == (1, [None] + ["COMPLETED"] * 7)
    (theirs / "verdict.json").write_bytes(orjson.dumps({"verdict": "COMPLETED", "reason": ""}))
    assert CliRunner().invoke(app, line(file, runs)[3:]).exit_code == 0


def test_what_somebody_else_began_meanwhile_is_left_to_them(
    registry: Callable[[int], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arms = [Arm(point, each) for point, each in load(registry(4)).swept("listed")]
    ended, _ = (make_directory(tmp_path, "small", arm.condition, World(kind="sim")) for arm in arms)
    (ended / "verdict.json").write_bytes(orjson.dumps({"verdict": "COMPLETED", "reason": ""}))
    monkeypatch.setattr(subprocess, "Popen", None)
    crew.Crew(tmp_path, Console(file=(screen := StringIO()), width=200)).carry_out(arms, 2)
    assert [row.partition("seed 1: ")[2] for row in screen.getvalue().splitlines()] == ["is there already", "is being run by somebody else"]


def test_one_that_is_only_looked_at_starts_nothing(registry: Callable[[int], Path], tmp_path: Path) -> None:
    done = CliRunner().invoke(app, [*line(registry(4), tmp_path / "runs")[3:], "--dry-run"])
    assert (done.exit_code, (tmp_path / "runs").exists()) == (0, False)
    assert "8 simulations: 0 are there, 0 go on, 8 begin" in done.output


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ("{grid: {goal: [1]}}", "`sweeps.bad.run_set` is"),
        ("{run_set: small}", "`sweeps.bad` has no points"),
        ("{run_set: small, grid: {goal: [1]}, list: [{goal: 1}]}", "both `grid` and `list`"),
        ("{run_set: small, grid: {goal: 1}}", "`sweeps.bad.grid.goal` is `1`"),
        ("{run_set: small, grid: {}}", "`sweeps.bad.grid` is empty"),
        ("{run_set: small, list: []}", "`sweeps.bad.list` is"),
        ("{run_set: small, grid: {goal: [1, 1]}}", "names the point `goal=1` twice"),
        ("{run_set: smal, grid: {goal: [1]}}", "unknown run-set `smal`"),
        ("{run_set: small, grid: {gaol: [1]}}", "unknown key `gaol` (from `gaol: `1` of sweeps.bad`)"),
        ("{run_set: small, grid: {seed: [1]}}", "a run-set has its own `seed`s"),
        ("{run_set: small, grids: {goal: [1]}}", "unknown key `grids`"),
        ("{run_set: small, grid: {limits.grace_s: [10, 20]}}", "the points `limits.grace_s=10` and `limits.grace_s=20` are one condition"),
        ("{run_set: small, list: [{goal: 1}, {goal: 1, tokens: 64}]}", "`goal=1` and `goal=1 tokens=64` are one condition, run_fp"),
        ("{run_set: small, seeds: [1, 1], grid: {goal: [1]}}", "twice"),
    ],
)
def test_a_sweep_that_can_not_be_meant_is_refused(block: str, message: str, tmp_path: Path) -> None:
    text = REGISTRY.replace("CYCLES", "4") + f"  bad: {block}\n"
    with pytest.raises(ConfigError) as refused:
        Experiments(tmp_path / "experiments.yaml", read_yaml(text, "it")).swept("bad")
    assert message in str(refused.value)


def test_a_bad_end_is_told_and_is_the_end_of_the_sweep_too(registry: Callable[[int], Path], tmp_path: Path) -> None:
    file, runs = registry(4), tmp_path / "runs"
    file.write_text(file.read_text() + "  wild: {run_set: small, grid: {server_opt.lr: [0.1, 1.0e+308]}}\n")
    code = [sys.executable, "-c", "from flame.launch.cli import main; main()", "sweep", "wild", "--experiments", str(file)]
    for number in (1, 2):
        done = subprocess.run([*code, "--runs", str(runs)], capture_output=True, text=True, timeout=200, check=False)
        assert done.returncode == 1, done.stderr
        assert "1 DIVERGED" in done.stdout
        assert len(ends(runs)) == 2
        said = [row for row in done.stderr.splitlines() if row.startswith("[")]
        assert len(said) == (2 if number == 1 else 0)
        assert number == 2 or any("server_opt.lr=1e+308 one seed 1: DIVERGED: " in row for row in said)
        assert number == 2 or any(row.endswith("server_opt.lr=0.1 one seed 1: COMPLETED") for row in said)
