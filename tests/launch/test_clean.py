"""Strays: found by what their run recorded, told from runs that are going and from strangers, and ended."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import orjson
import psutil
import pytest

from flame.launch.folder.clean import clean, trace, traces

SLEEP = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(60)"]
STUBBORN = [
    sys.executable, "-c",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)",
]  # fmt: skip

Started = list[subprocess.Popen[bytes]]


@pytest.fixture
def started() -> Iterator[Started]:
    """Processes of this test, ended after it."""
    processes: Started = []
    yield processes
    for process in processes:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def begin(started: Started, command: list[str] = SLEEP) -> subprocess.Popen[bytes]:
    """A process in a group of its own, up."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, process_group=0)
    started.append(process)
    assert process.stdout is not None
    process.stdout.readline()
    return process


def record(runs: Path, **pids: int | None) -> Path:
    """A run directory that recorded these."""
    run = runs / "20260101T101500Z_toy_fwdllm_n10_s1_real"
    run.mkdir(parents=True)
    (run / "launcher.json").write_bytes(orjson.dumps(pids))
    return run


def dead(started: Started) -> int:
    """The pid of a process that is gone."""
    process = begin(started)
    process.kill()
    process.wait()
    return process.pid


def test_children_without_their_launcher_are_strays(tmp_path: Path, started: Started) -> None:
    child, broker = begin(started), begin(started)
    record(tmp_path, pid=dead(started), group=child.pid, broker=broker.pid)
    (found,) = traces(tmp_path)
    assert (found.stray, found.going) == (True, False)
    assert found.others == tuple(sorted((child.pid, broker.pid)))


def test_a_run_whose_launcher_lives_is_going(tmp_path: Path, started: Started) -> None:
    launcher, child = begin(started), begin(started)
    record(tmp_path, pid=launcher.pid, group=child.pid)
    (found,) = traces(tmp_path)
    assert (found.going, found.stray, found.launcher) == (True, False, launcher.pid)
    assert clean([found]) == []
    assert child.poll() is None, "not ours to end"
    (found.run / "verdict.json").write_text("{}")
    assert traces(tmp_path) == [], "it has ended, and its launcher sees its children out"


def test_ones_own_run_is_not_reported(tmp_path: Path) -> None:
    record(tmp_path, pid=os.getpid())
    assert traces(tmp_path) == []


def test_a_number_that_was_given_to_somebody_else_is_a_stranger(tmp_path: Path, started: Started) -> None:
    stranger = begin(started)
    run = record(tmp_path, pid=stranger.pid, group=stranger.pid, broker=stranger.pid)
    before = time.time() - 3600
    os.utime(run / "launcher.json", (before, before))
    assert traces(tmp_path) == []


def test_nothing_is_found_where_nothing_is(tmp_path: Path, started: Started) -> None:
    assert traces(tmp_path) == []
    run = record(tmp_path, pid=dead(started))
    assert traces(tmp_path) == []
    (run / "launcher.json").write_text("{")
    assert traces(tmp_path) == []
    assert not trace(tmp_path / "nowhere").stray


@pytest.mark.parametrize("command", [SLEEP, STUBBORN], ids=["obedient", "stubborn"])
def test_strays_are_ended(tmp_path: Path, started: Started, monkeypatch: pytest.MonkeyPatch, command: list[str]) -> None:
    monkeypatch.setattr("flame.launch.folder.clean.GRACE_S", 0.3)
    child = begin(started, command)
    record(tmp_path, pid=dead(started), group=child.pid)
    assert clean(traces(tmp_path)) == []
    assert not psutil.pid_exists(child.pid)
    assert traces(tmp_path) == []
