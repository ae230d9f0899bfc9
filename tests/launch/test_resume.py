"""A simulation that was killed and resumed ends as the one that was left alone: the same books, but for what was measured."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from time import monotonic, sleep
from typing import Any

import orjson
import pytest

import flame
from flame.config import Condition, World
from flame.launch.run import resume
from flame.runtime.books import journal
from flame.runtime.books.checkpoint import Checkpoint, NoCheckpoint
from flame.runtime.books.replay import replay
from flame.telemetry.rundir import RunDir

PLAIN: dict[str, Any] = {
    "trainers": 10, "goal": 3, "concurrency": 6, "loop": "async", "select": "async_oort", "perturb": {"type": "best_of", "probes": 3},
    "commit": [{"type": "variance", "threshold": 0.3}, {"type": "plateau"}, {"type": "cap", "max": 4}], "rate": "fedbuff",
    "server_opt": {"type": "momentum", "lr": 0.05}, "payload": {"down": "delta", "up": "seeds"}, "toy": {"features": 50},
    "availability": {"trace": "phone_2st", "time_scale": 6000, "abandon_s": 900}, "awareness": "notified",
    "sizes": {"type": "var_tracking", "target": 2, "step": 1, "window": 1, "goal_min": 2, "goal_max": 4},
    "delays": {"values": [0.15, 0.2, 0.25, 0.25, 0.3, 0.3, 0.4, 0.5, 0.5, 0.6]}, "stop": {"cycles": 60},
}  # fmt: skip
"""With all that has a state: a pacer, a plateau, a controller, momentum, a shelf of versions, beliefs."""

SYNC: dict[str, Any] = PLAIN | {
    "loop": "sync", "concurrency": 4, "select": {"type": "random", "every": "round"}, "perturb": "guided", "staleness": "same_bin",
    "sizes": "static", "payload": {"down": "once_per_version", "up": "dense"},
}  # fmt: skip

MEASURED = {"wall_s", "phases", "host", "cpu_percent", "rss_bytes", "duration_s", "counts"}


class Killed(Exception):
    """The process is gone."""


def books(path: Path) -> tuple[list[Any], bytes]:
    """Telemetry without what was measured and without its run's name; the steps of the journal."""
    lines = [orjson.loads(line) for line in (path / "telemetry" / "sim-1.jsonl").read_bytes().splitlines()]
    told = [
        [line[name] for name in ("seq", "node", "t_ns", "stamp_ns")] + [each for each in line["record"].items() if each[0] not in MEASURED]
        for line in lines
        if line["record"]["kind"] != "resource"
    ]
    return told, (path / "journal" / "sim-1.jsonl").read_bytes().split(b"\n", 1)[1]


@contextmanager
def dying(at: int) -> Iterator[None]:
    """The process is gone at its step `at`."""

    def append(self: Any, *args: Any) -> None:
        if self.seq == at:
            raise Killed
        real(self, *args)

    real = journal.Journal.append
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(journal.Journal, "append", append)
        yield


def cut_short(condition: Condition, world: World, runs: Path, at: int) -> Path:
    """A run whose process was gone at its step `at`, the lines that it was writing torn."""
    with dying(at):
        done = flame.run(condition, world, runs=runs)
    assert (done.verdict, done.reason) == ("CRASH", "Killed: ")
    for folder, torn in (("journal", b'{"step":{"seq":'), ("telemetry", b'{"v":1,"run"')):
        with (done.path / folder / "sim-1.jsonl").open("ab") as file:
            file.write(torn)
    return done.path


@pytest.mark.parametrize("every", [1, 7])
@pytest.mark.parametrize("shape", [PLAIN, SYNC], ids=["async", "sync"])
def test_killed_at_any_step_it_ends_as_if_it_had_not_been(shape: dict[str, Any], every: int, tmp_path: Path) -> None:
    condition, world = Condition.model_validate(shape), World(checkpoint=every)
    whole = flame.run(condition, world, runs=tmp_path)
    steps = books(whole.path)[1].count(b"\n")
    for at in Random(every).sample(range(condition.trainers + 2, steps), 5):
        path = cut_short(condition, world, tmp_path, at)
        resumed = resume(path, condition, world)
        assert (resumed.verdict, resumed.reason, resumed.accepts) == (whole.verdict, whole.reason, whole.accepts)
        assert books(path) == books(whole.path)
        assert not [node for node in replay(path) if node.difference or node.skipped]


def test_it_may_be_cut_short_again_and_again(tmp_path: Path) -> None:
    condition, world = Condition.model_validate(PLAIN), World(checkpoint=3)
    whole = flame.run(condition, world, runs=tmp_path)
    steps = books(whole.path)[1].count(b"\n")
    path = cut_short(condition, world, tmp_path, steps // 4)
    for at in (steps // 2, steps * 3 // 4):
        with dying(at):
            assert resume(path, condition, world).verdict == "CRASH"
    resume(path, condition, world)
    assert books(path) == books(whole.path)


def test_a_checkpoint_stands_where_it_was_asked_for(tmp_path: Path) -> None:
    condition = Condition.model_validate(PLAIN)
    done = flame.run(condition, World(checkpoint=4), runs=tmp_path)
    version = Checkpoint.read(done.path).state.aggregator.cycle.progress.model_version
    assert done.commits - 4 < version <= done.commits
    assert version % 4 == 0
    with pytest.raises(NoCheckpoint, match="before its first checkpoint"):
        Checkpoint.read(flame.run(condition, World(checkpoint=0), runs=tmp_path).path)


@pytest.mark.parametrize(("asked", "kept"), [([], 0), (["--checkpoint", "2"], 4), (["--checkpoint", "0"], None)])
def test_the_flag_says_how_often(asked: list[str], kept: int | None, flame: Any, tmp_path: Path) -> None:
    assert flame("run", "small", "--only", "plain", *asked).exit_code == 0
    (path,) = (tmp_path / "runs").iterdir()
    assert (path / "checkpoint").exists() == (kept is not None)
    assert kept is None or Checkpoint.read(path).state.aggregator.cycle.progress.model_version == kept
    assert flame("run", "small", "--checkpoint", "-1").exit_code == 2


def test_another_code_refuses_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = flame.run(Condition.model_validate(PLAIN), runs=tmp_path)
    monkeypatch.setattr("flame.runtime.books.checkpoint.code_digest", lambda: "0.0.0+else")
    with pytest.raises(NoCheckpoint, match=r"was written by other code .*this is 0\.0\.0\+else"):
        Checkpoint.read(done.path)


def command(*args: str, runs: Path) -> "subprocess.CompletedProcess[str]":
    """`flame ...` in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", "from flame.launch.cli import main; main()", *args],
        cwd=runs,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_command_goes_on_after_ctrl_c_and_after_a_kill(tmp_path: Path) -> None:
    condition = Condition.model_validate(PLAIN | {"stop": {"cycles": 3000}})
    whole = flame.run(condition, World(checkpoint=5), runs=tmp_path)
    code = f"""if True:
        import flame
        from flame.config import Condition, World
        print(flame.run(Condition.model_validate_json({condition.model_dump_json()!r}), World(checkpoint=5), runs="cut").path, flush=True)
    """
    for number, sent in enumerate((signal.SIGINT, signal.SIGKILL)):
        process = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        checkpoint = _appears(tmp_path / "cut", number)
        process.send_signal(sent)
        process.wait(60)
        verdict = RunDir(checkpoint.parent).verdict
        assert (verdict and verdict.verdict) == ("INTERRUPTED" if sent == signal.SIGINT else None)
        done = command("resume", str(checkpoint.parent), runs=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "COMPLETED" in done.stderr
        assert books(checkpoint.parent) == books(whole.path)


def _appears(runs: Path, number: int) -> Path:
    """The checkpoint of the run of that number in `runs`, once it has been renewed; waited for no longer than a minute."""
    until = monotonic() + 60
    while monotonic() < until:
        found = sorted(runs.glob("*/checkpoint"))
        if len(found) > number and Checkpoint.read(found[number].parent).state.aggregator.cycle.progress.model_version:
            return found[number]
        sleep(0.01)
    raise AssertionError(f"no checkpoint in {runs} after a minute")


def without(path: Path, *names: str) -> None:
    """Take files out of a run; its launcher, which is this process, is gone in any case."""
    for name in (*names, "launcher.json"):
        (path / name).unlink()


@pytest.mark.parametrize(
    ("missing", "said"),
    [
        ([], "has ended: COMPLETED"),
        (["verdict.json", "checkpoint"], "stopped before its first checkpoint"),
        (["condition.json"], "can't be resumed"),
    ],
    ids=["ended", "none", "no run"],
)
def test_what_can_not_go_on_is_refused(missing: list[str], said: str, tmp_path: Path) -> None:
    done = flame.run(Condition.model_validate(PLAIN | {"stop": {"cycles": 3}}), runs=tmp_path)
    without(done.path, *missing)
    refused = command("resume", str(done.path), runs=tmp_path)
    assert refused.returncode == 2
    assert said in refused.stderr
    assert "hint:" in refused.stderr


def test_a_run_that_somebody_conducts_is_refused(tmp_path: Path) -> None:
    done = flame.run(Condition.model_validate(PLAIN | {"stop": {"cycles": 3}}), runs=tmp_path)
    (done.path / "verdict.json").unlink()
    assert "is still running" in command("resume", str(done.path), runs=tmp_path).stderr
