"""The command line on small real input: runs, exit codes, lists, replays; and what importing it costs."""

import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import orjson
import pytest

from flame.launch import batch
from flame.launch.folder.clean import Trace
from flame.launch.preflight import findings
from flame.launch.screen import consoles
from flame.telemetry.rundir import RunDir, RunName
from tests.launch.conftest import terminal

HEAVY = ("torch", "transformers", "polars", "numpy", "scipy", "h5py", "matplotlib")


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"]])
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    code = (
        "import sys, flame.launch.cli as cli\n"
        f"sys.argv = ['flame', *{arguments!r}]\n"
        "try: cli.main()\n"
        "except SystemExit as end: assert not end.code\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "Usage: flame" in done.stdout
    assert done.stderr.strip() == "[]"


def test_without_a_run_set_they_are_listed(flame: Any) -> None:
    result = flame("run")
    assert result.exit_code == 2
    assert "four trainers on made-up data" in result.stderr
    assert "flame run small --mode both" in result.stderr


def test_a_dry_run_prints_and_starts_nothing(flame: Any, tmp_path: Path) -> None:
    result = flame("run", "small", "--dry-run", "--mode", "both")
    assert result.exit_code == 0
    assert "shared condition" in result.stdout
    assert "nothing stands in the way" in result.stdout
    assert not (tmp_path / "runs").exists()


def test_a_run_set_is_run_and_closed_with_a_table(flame: Any, tmp_path: Path) -> None:
    result = flame("run", "small", "--seeds", "1,2", "--level", "commits")
    assert result.exit_code == 0, result.output
    names = [RunName.parse(path.name) for path in sorted((tmp_path / "runs").iterdir())]
    assert [(name.run_set, name.baseline, name.trainers, name.seed, name.world) for name in names if name] == [
        ("small", "gated", 4, 1, "sim"), ("small", "gated", 4, 2, "sim"), ("small", "plain", 4, 1, "sim"), ("small", "plain", 4, 2, "sim"),
    ]  # fmt: skip
    assert result.stdout.count("COMPLETED") == 4
    assert "sim_rate" in result.stdout
    assert "[sim] COMPLETED: 5 cycles" in result.stderr
    assert all(RunDir(path).disagreement() is None for path in (tmp_path / "runs").iterdir())


@pytest.mark.parametrize(("width", "shown"), [(140, True), (70, False)])
def test_a_narrow_terminal_gets_the_columns_that_matter(flame: Any, monkeypatch: pytest.MonkeyPatch, width: int, shown: bool) -> None:
    terminal(monkeypatch, width)
    result = flame("run", "small", "--only", "plain")
    head, row = result.stdout.splitlines()[-2:]
    assert row.split()[:1] == ["plain"]
    assert "COMPLETED" in row
    assert ("commits" in head) == shown
    assert "virtual" in head
    assert len(head) <= width
    listed = flame("runs").stdout.splitlines()
    assert "COMPLETED" in listed[1]
    assert ("virtual" in listed[0]) == shown


def test_flags_reach_the_stored_condition(flame: Any, tmp_path: Path) -> None:
    flags = ["--set", "stop.cycles=3", "--agg-goal", "1", "--delay-factor", "2", "--var-threshold", "0.5", "--max-iter-per-data-id", "4"]
    assert flame("run", "small", "--only", "gated", *flags, "--blobs", "none", "--wire", "roundtrip").exit_code == 0
    (path,) = (tmp_path / "runs").iterdir()
    run = RunDir(path)
    assert (run.condition.stop.cycles, run.condition.goal, run.condition.delays.factor) == (3, 1, 2.0)
    assert [rule.model_dump() for rule in run.condition.commit] == [{"type": "variance", "threshold": 0.5}, {"type": "cap", "max": 4}]
    assert (run.world.blobs, run.world.wire) == ("none", "roundtrip")


def test_a_bad_end_does_not_stop_the_rest(flame: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    real_run = batch.run

    def breaks(condition: Any, world: Any, **rest: Any) -> Any:
        if condition.baseline == "gated":
            raise OSError("the disk is full")
        return real_run(condition, world, **rest)

    monkeypatch.setattr(batch, "run", breaks)
    result = flame("run", "small")
    assert result.exit_code == 1
    assert "CRASH OSError: the disk is full" in result.stderr
    assert "COMPLETED" in result.stdout


def test_an_interrupted_run_stops_the_rest(flame: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made = batch.Run(tmp_path, "INTERRUPTED", "SIGINT", 1, 1, 1, 1.0, 1.0, 1.0)
    monkeypatch.setattr(batch, "run", lambda *args, **rest: made)
    result = flame("run", "small", "--seeds", "1,2,3")
    assert result.exit_code == 1
    assert "5 runs were not started" in result.stderr


def test_runs_are_listed_and_one_without_a_verdict_is_a_crash(flame: Any, tmp_path: Path) -> None:
    assert "no runs in runs" in flame("runs").stdout
    flame("run", "small")
    crashed = sorted((tmp_path / "runs").iterdir())[0]
    (crashed / "verdict.json").unlink()
    (crashed / "launcher.json").write_bytes(orjson.dumps({"pid": 0}))
    listed = flame("runs").stdout
    assert [line.split()[1] for line in listed.splitlines()[1:]] == ["CRASH", "COMPLETED"]
    status = flame("status")
    assert status.exit_code == 0
    assert f"{crashed.name}  CRASH" in status.stdout
    assert "nothing is going on" in status.stdout


def test_a_run_replays_from_the_command_line(flame: Any, tmp_path: Path) -> None:
    flame("run", "small", "--only", "gated")
    (path,) = (tmp_path / "runs").iterdir()
    whole = flame("replay", str(path))
    assert whole.exit_code == 0
    assert whole.stdout.count("identical") >= 2
    steps = flame("replay", str(path), "--node", "aggregator", "--until", "8", "--print")
    assert steps.exit_code == 0
    assert "aggregator: Started()" in steps.stdout or "Started(" in steps.stdout
    assert flame("replay", str(path), "--node", "t9").exit_code == 2
    last = sum(int(line.split()[1]) for line in whole.stdout.splitlines()) - 1
    assert f"{last + 1} steps, identical" in flame("replay", str(path), "--until", str(last)).stdout
    for step in (-1, last + 1, 999_999):
        refused = flame("replay", str(path), "--until", str(step))
        assert refused.exit_code == 2
        assert f"`--until {step}`: the steps of `{path.name}` are 0 to {last}" in refused.stderr
    assert flame("replay", str(tmp_path)).exit_code == 2


def test_a_changed_blob_free_run_says_that_it_cannot_be_replayed(flame: Any, tmp_path: Path) -> None:
    flame("run", "small", "--only", "gated", "--blobs", "none")
    (path,) = (tmp_path / "runs").iterdir()
    result = flame("replay", str(path))
    assert result.exit_code == 1
    assert "blobs: none" in result.stdout


def test_parity_is_delegated_with_its_own_help_and_codes(flame: Any) -> None:
    assert "usage: flame parity" in flame("parity", "--help").stdout
    assert flame("parity", "nowhere").exit_code == 2


@pytest.mark.real
def test_a_pair_is_run_compared_and_scored(flame: Any, tmp_path: Path) -> None:
    """Decisions are equal whatever else this machine does. How late things are is its load's matter, and may fail."""
    result = flame("run", "small", "--mode", "both", "--only", "plain", "--yes")
    table = result.stdout.splitlines()[-2:]
    assert "passed" in table[-1]
    for path in (tmp_path / "runs").iterdir():
        (pair,) = orjson.loads((path / "parity.json").read_bytes())["pairs"]
        failed = {rung["domain"] for rung in pair["rungs"] if rung["verdict"] == "FAIL"}
        assert failed <= {"PHYSICAL"}, result.output
        assert pair["summary"]["error"] == 0
        assert (result.exit_code, "failed" in table[-1]) == (int(bool(failed)), bool(failed))


def test_clean_ends_strays_and_goes_on(flame: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    stray, ended = Trace(Path("runs/old"), None, (123456,)), list[Any]()
    monkeypatch.setattr(findings, "traces", lambda runs: [] if ended else [stray])
    monkeypatch.setattr(findings, "clean", ended.append)
    assert flame("run", "small", "--dry-run").exit_code == 2
    assert flame("run", "small", "--only", "plain", "--clean").exit_code == 0
    assert ended == [[stray]]


@pytest.mark.parametrize(("typed", "goes_on"), [("\n", True), ("y\n", True), ("no\n", False), ("n\n", False), ("", False)])
def test_a_person_is_asked(monkeypatch: pytest.MonkeyPatch, typed: str, goes_on: bool) -> None:
    person = StringIO(typed)
    monkeypatch.setattr(person, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stdin", person)
    assert consoles.agreed("start 2 runs?") == goes_on


def test_nobody_is_asked_where_nobody_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", StringIO(""))
    assert consoles.agreed("start 1 run?")


def test_a_checker_that_breaks_is_said_and_stops_nothing(flame: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def breaks(*paths: Any) -> None:
        raise KeyError("accepted")

    made = batch.Run(tmp_path, "COMPLETED", "", 1, 1, 1, 1.0, 1.0, 1.0)
    monkeypatch.setattr(batch, "run", lambda *args, **rest: made)
    monkeypatch.setattr(batch, "_compared", breaks)
    result = flame("run", "small", "--mode", "both")
    assert result.exit_code == 1
    assert result.stdout.count("not compared: KeyError: 'accepted'") >= 2
    assert flame("run", "small", "--mode", "both", "--no-parity").exit_code == 0
