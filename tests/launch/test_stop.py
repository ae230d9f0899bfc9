"""A stop asked for from outside: the run ends as INTERRUPTED, its telemetry can be read, its processes are gone."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import orjson
import psutil
import pytest

from flame.config.experiments import Experiments
from flame.launch import run as launching
from flame.launch.folder.asking import Asked, ask, asked
from flame.launch.folder.clean import trace
from flame.telemetry.rundir import RunDir
from tests.launch.conftest import SECTIONS

PATIENCE_S = 90.0
LONG = ["--only", "plain", "--set", "stop.cycles=100000", "--set", "stop.wall_s=300", "--yes"]


@pytest.fixture
def begun(flame: Any, tmp_path: Path) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Launchers of this test, ended after it."""
    flame("runs")  # writes experiments.yaml
    started: list[subprocess.Popen[bytes]] = []
    yield started
    for process in started:
        process.kill()
        process.wait()


def launch(begun: list[subprocess.Popen[bytes]], folder: Path, mode: str) -> Path:
    """A long run in that world, after its first cycles; its directory."""
    command = [sys.executable, "-c", "from flame.launch.cli import main; main()", "run", "small", "--mode", mode, *LONG]
    begun.append(subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
    until = monotonic() + PATIENCE_S
    while monotonic() < until:
        for lines in folder.glob("runs/*/telemetry/*.jsonl"):
            if b'"agg_round"' in lines.read_bytes():
                return lines.parent.parent
        sleep(0.05)
    raise AssertionError(f"no cycle has closed within {PATIENCE_S:.0f} s")


@pytest.mark.parametrize("mode", ["sim", pytest.param("real", marks=pytest.mark.real)])
def test_a_run_that_is_asked_ends_in_order(flame: Any, begun: list[subprocess.Popen[bytes]], tmp_path: Path, mode: str) -> None:
    run = launch(begun, tmp_path, mode)
    members = trace(run).others
    assert bool(members) == (mode == "real")
    result = flame("stop", run.name[:24])
    assert result.exit_code == 0, result.output
    assert result.stdout.split() == [run.name, "INTERRUPTED"]
    assert begun[0].wait(PATIENCE_S) == 1
    assert not any(psutil.pid_exists(pid) for pid in members)
    stored = RunDir(run)
    assert stored.verdict is not None
    assert (stored.verdict.verdict, stored.verdict.reason) == ("INTERRUPTED", "asked by `flame stop`")
    assert stored.telemetry.frame("agg_round").height == stored.verdict.cycles > 0
    assert "stop_asked" in "".join(path.read_text() for path in (run / "journal").glob("*.jsonl")).lower()
    assert "nothing is going on" in flame("status").stdout


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT], ids=lambda signum: signum.name)
def test_a_signal_is_heard_as_soon_as_there_is_a_directory(signum: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def struck(path: Path, *rest: Any) -> None:
        written(path, *rest)
        signal.raise_signal(signum)

    written = launching.write_condition
    monkeypatch.setattr(launching, "write_condition", struck)
    unheard: list[int] = []
    before = signal.signal(signum, lambda number, frame: unheard.append(number))
    try:
        ended = launching.run(Experiments(tmp_path, SECTIONS).resolve("small", only=["plain"])[0].condition, runs=tmp_path)
    finally:
        signal.signal(signum, before)
    assert (ended.verdict, ended.reason, unheard) == ("INTERRUPTED", signum.name, [])


def test_nothing_is_stopped_where_nothing_goes_on(flame: Any, tmp_path: Path) -> None:
    run = tmp_path / "runs" / "20260101T101500Z_small_gated_n4_s1_sim"
    run.mkdir(parents=True)
    (run / "condition.json").write_text("{}")
    (run / "launcher.json").write_bytes(orjson.dumps({"pid": 0}))
    said = flame("stop", "20260101")
    assert said.exit_code == 2
    assert "isn't going: CRASH" in said.stderr
    assert not (run / "stop").exists()
    (run.parent / run.name.replace("s1", "s2")).mkdir()
    assert "begins the names of 2 runs" in flame("stop", "2026").stderr
    assert "unknown run `1999`" in flame("stop", "1999").stderr


def test_what_was_asked_is_noted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flame.launch.folder.asking.LOOK_S", 0.0)
    wanted = Asked()
    wanted.within(tmp_path)
    assert (wanted.why, asked(tmp_path)) == (None, None)
    ask(tmp_path, "enough")
    assert wanted.why == "enough"
    wanted.signalled("SIGTERM")
    assert (wanted.why, wanted.again) == ("SIGTERM", False)
    wanted.signalled("SIGINT")
    assert (wanted.why, wanted.again) == ("SIGTERM", True)
