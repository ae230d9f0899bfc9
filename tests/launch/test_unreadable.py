"""Runs that can't be read, being somebody else's or broken, are told as such and stand in nobody's way."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from flame.config.errors import ConfigError
from flame.figures.page import taken
from flame.launch.folder import prune as pruning
from flame.telemetry.reader import TelemetryError
from tests.launch.test_prune import make


@pytest.fixture
def pair(flame: Any, tmp_path: Path) -> tuple[Path, Path]:
    """Two whole runs, the older one first."""
    for seed in ("1", "2"):
        assert flame("run", "small", "--only", "gated", "--seeds", seed).exit_code == 0
    one, other = sorted((tmp_path / "runs").iterdir())
    return one, other


def test_what_is_somebody_elses_is_shown_and_left(flame: Any, closed: Any, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    mine, theirs = make(runs, 2), closed(make(runs, 1))
    for command in (["runs", "--size"], ["runs", "--verdict", "unreadable"], ["status"]):
        shown = flame(*command)
        assert shown.exit_code == 0, shown.output
        assert f"{theirs.name}" in shown.stdout
        assert "UNREADABLE" in shown.stdout
        assert (mine.name in shown.stdout) == ("--size" in command)
    assert "can't be read: Permission denied" in flame("status").stdout
    assert "isn't going: UNREADABLE" in flame("stop", theirs.name).stderr
    assert flame("runs", "prune", "--keep", "0", "--yes").exit_code == 0
    assert (mine.exists(), theirs.exists()) == (False, True)


def test_a_run_of_somebody_elses_can_not_be_drawn(closed: Any, tmp_path: Path) -> None:
    theirs = closed(make(tmp_path / "runs", 1))
    with pytest.raises(ConfigError, match="can't be read: Permission denied"):
        taken([str(theirs)])


def test_what_cant_be_removed_is_said_and_the_rest_goes(flame: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine, theirs = (make(tmp_path / "runs", days) for days in (1, 2))
    remove = pruning.shutil.rmtree

    def guarded(path: Path) -> None:
        if path.name == theirs.name:
            raise PermissionError(13, "Permission denied")
        remove(path)

    monkeypatch.setattr(pruning.shutil, "rmtree", guarded)
    result = flame("runs", "prune", "--keep", "0", "--yes")
    assert result.exit_code == 1
    assert f"{theirs.name} can't be removed: Permission denied" in result.stdout
    assert (mine.exists(), theirs.exists()) == (False, True)


def test_a_folder_that_is_somebody_elses_is_refused(flame: Any, closed: Any, tmp_path: Path) -> None:
    make(tmp_path / "runs", 1)
    closed(tmp_path / "runs")
    for command in (["runs"], ["status"], ["runs", "prune", "--keep", "1"]):
        result = flame(*command)
        assert result.exit_code == 2
        assert "`runs` can't be read: Permission denied" in result.stderr


def test_a_corrupt_run_is_shown_as_what_it_is(flame: Any, tmp_path: Path) -> None:
    run = make(tmp_path / "runs", 1)
    (run / "verdict.json").write_text("{")
    assert run.name in flame("runs", "--verdict", "UNREADABLE").stdout
    status = flame("status").stdout
    assert f"{run.name}  UNREADABLE" in status
    assert "verdict.json` is corrupt" in status


@pytest.mark.parametrize("paths", [["runs"], ["{mine}", "{theirs}"]])
def test_single_runs_are_checked_beside_one_that_is_somebody_elses(flame: Any, closed: Any, pair: Any, paths: list[str]) -> None:
    mine, theirs = pair
    closed(theirs)
    named = [path.format(mine=mine, theirs=theirs) for path in paths]
    result = flame("check", *named)
    assert result.exit_code == (0 if paths == ["runs"] else 2), "who names it wants it checked"
    assert mine.name in result.stdout
    assert f"{theirs.name}/condition.json` can't be read: Permission denied" in result.stderr


@pytest.mark.parametrize("command", ["replay", "resume", "replicate"])
def test_a_command_about_it_is_refused(flame: Any, closed: Any, pair: Any, command: str) -> None:
    result = flame(command, str(closed(pair[0])))
    assert result.exit_code == 2
    assert "can't be read: Permission denied" in result.stderr


def test_a_sweep_has_no_score_of_a_run_without_telemetry(flame: Any, pair: Any, sections: dict[str, Any]) -> None:
    sections["sweeps"] = {"all": {"run_set": "small", "seeds": [1, 2], "only": ["gated"], "list": [{"goal": 2}]}}
    whole = flame("sweep", "all", "--dry-run").stdout
    shutil.rmtree(pair[1] / "telemetry")
    half = flame("sweep", "all", "--dry-run")
    assert half.exit_code == 0, half.output
    assert "2/2" in whole
    assert "2/2" in half.stdout
    shutil.rmtree(pair[0] / "telemetry")
    assert "-" in flame("sweep", "all", "--dry-run").stdout.splitlines()[-1].split()
    assert flame("runs").stdout.count("COMPLETED") == 2


def test_telemetry_that_is_corrupt_is_one_message(flame: Any, pair: Any, tmp_path: Path) -> None:
    shutil.rmtree(pair[0] / "telemetry" / "compacted")
    (pair[0] / "telemetry" / "sim-1.jsonl").write_bytes(b"garbage\n")
    run = str(pair[0])
    fork = ["resume", run, "--fork-at", "2", "--set", "goal=1"]
    for command in (["export", "csv", run, "--out", "out"], ["export", "trace", run], fork):
        result = flame(*command)
        assert (result.exit_code, result.stderr.count("is corrupt")) == (2, 1), result.output
    assert not list(tmp_path.glob("out/*"))


def test_whatever_the_command_can_not_read_is_one_message(flame: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreadable(*arguments: Any) -> None:
        raise TelemetryError("`sim-1.jsonl` line 3 is corrupt")

    monkeypatch.setattr("flame.launch.residuals.calibrate", unreadable)
    result = flame("calibrate", "run")
    assert (result.exit_code, result.stderr) == (2, "error: `sim-1.jsonl` line 3 is corrupt\n")
