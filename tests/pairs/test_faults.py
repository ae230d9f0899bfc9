"""Faults in mid-run: what may not change the pair doesn't, what ends the run says why, nothing hangs or stays behind."""

import os
import signal
import subprocess
import sys
import threading
import time
from itertools import product
from pathlib import Path

import psutil
import pytest

from flame.core.messages import Assign, Payload, Update
from flame.core.tensor import Tensor
from flame.runtime.books.replay import replay
from flame.runtime.transport import codec
from flame.telemetry.rundir import RunDir

from .support import (
    ASYNC,
    GATED,
    SCALARS,
    Harm,
    condition,
    cycles,
    freeze_worker,
    kill_broker,
    kill_worker,
    launched,
    members,
    run_for_real,
    simulate,
)

pytestmark = pytest.mark.real


@pytest.mark.parametrize(
    ("shape", "harm"),
    [*product((GATED, ASYNC), (kill_worker, freeze_worker, kill_broker)), (SCALARS, kill_worker)],
    ids=lambda value: value["baseline"] if isinstance(value, dict) else value.__name__,
)
def test_a_worker_or_broker_that_fails_leaves_the_pair_exact(harm, shape, tmp_path: Path):
    what = condition(shape, limits={"resend_s": 0.5, "heartbeat_s": 0.25, "grace_s": 1.5})
    ui = Harm(tmp_path, 3, harm)
    sim, real = simulate(what, tmp_path), run_for_real(what, tmp_path, ui)
    assert ui.done
    assert any("started again" in note for note in ui.notes)
    assert real.verdict == "COMPLETED"
    assert cycles(real) == cycles(sim)
    assert [node for node in replay(real.path) if node.difference or node.skipped] == []
    assert members(real.path) == []


def test_spent_respawns_are_an_intrusion_and_the_run_goes_on(tmp_path: Path):
    what = condition(ASYNC, limits={"respawns": 0}, goal=2, concurrency=4)
    ui = Harm(tmp_path, 3, kill_worker)
    real = run_for_real(what, tmp_path, ui)
    assert real.verdict == "COMPLETED"
    assert any("its trainers are lost" in note for note in ui.notes)
    intrusions = real.frame("intrusion")
    assert len(intrusions) == 4, "a worker hosts half of the eight trainers"
    assert set(intrusions["what"].str.contains("respawns are spent")) == {True}
    before = intrusions["cycle"].min()
    assert cycles(real)[:before] == cycles(simulate(what, tmp_path))[:before]


def test_without_enough_trainers_a_run_starves_and_says_so(tmp_path: Path):
    what = condition(GATED, limits={"respawns": 0})
    real = run_for_real(what, tmp_path, Harm(tmp_path, 3, kill_worker))
    assert real.verdict == "STARVED"
    assert "is gone" in real.reason
    assert "accepts" in real.reason


def test_a_goal_that_waits_for_who_is_away_is_said(tmp_path: Path):
    away = {"trace": "syn_50", "time_scale": 500}
    what = condition(GATED, availability=away, stop={"cycles": 1}, limits={"heartbeat_s": 0.25, "grace_s": 1.5})
    ui = Harm(tmp_path, 0, lambda path: None)
    real = run_for_real(what, tmp_path, ui)
    assert real.verdict == "COMPLETED"
    stalls = [note for note in ui.notes if note.startswith("no cycle has closed for")]
    assert len(stalls) == 1, ui.notes
    assert "of 6 accepts" in stalls[0]
    assert "is open, due" in stalls[0]


def test_nobody_listens_at_the_broker(tmp_path: Path):
    real = run_for_real(condition(ASYNC, limits={"ready_wait_s": 2}), tmp_path, broker="127.0.0.1:9")
    assert real.verdict == "CRASH"
    assert "no MQTT broker answers at 127.0.0.1:9" in real.reason
    assert "--broker embedded" in real.reason


def test_ctrl_c_ends_in_order(tmp_path: Path):
    """As at a terminal: everybody in the launcher's process group gets the signal."""
    script = "import sys, tests.pairs.support as s, pathlib; s.run_for_real(s.condition(s.ASYNC), pathlib.Path(sys.argv[1]))"
    launcher = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], process_group=0)
    path = _after_cycle(3, tmp_path)
    os.killpg(launcher.pid, signal.SIGINT)
    assert launcher.wait(15) == 0
    real = RunDir(path)
    assert real.verdict is not None
    assert real.verdict.verdict == "INTERRUPTED"
    assert "KeyboardInterrupt" not in (path / "broker" / "broker.log").read_text()
    assert members(real.path) == []
    assert real.telemetry.frame("run_end")["verdict"].to_list() == ["INTERRUPTED"]
    assert real.telemetry.frame("intrusion")["what"].to_list() == ["SIGINT"]


def _after_cycle(cycle: int, runs: Path) -> Path:
    """The directory of the only run, once that cycle has closed; at most 30 s."""
    until, closed = time.monotonic() + 30, f'"cycle":{cycle}'.encode()
    while time.monotonic() < until:
        for file in runs.glob("*/telemetry/aggregator-1.jsonl"):
            if closed in file.read_bytes():
                return file.parents[1]
        threading.Event().wait(0.05)
    raise TimeoutError(f"no run in {runs} has closed cycle {cycle} after 30 s")


def test_a_dead_aggregator_is_a_crash_with_its_log(tmp_path: Path):
    ui = Harm(tmp_path, 3, lambda path: os.kill(launched(path)["group"], signal.SIGKILL))
    real = run_for_real(condition(ASYNC), tmp_path, ui)
    assert real.verdict == "CRASH"
    assert "`aggregator` ended with exit code -9" in real.reason
    assert members(real.path) == []


def test_the_wall_ceiling_has_a_verdict_of_its_own(tmp_path: Path):
    real = run_for_real(condition(ASYNC, stop={"cycles": 1000, "wall_s": 6}), tmp_path)
    assert real.verdict == "WALL_CEILING"


def test_strangers_on_the_broker_change_nothing(tmp_path: Path):
    """Garbage, a truncated message, a duplicate, a message of another run, and an update that nobody asked for."""
    what = condition(ASYNC)
    ui = Harm(tmp_path, 2, _shout)
    sim, real = simulate(what, tmp_path), run_for_real(what, tmp_path, ui, broker="embedded")
    assert real.verdict == "COMPLETED"
    assert cycles(real) == cycles(sim)
    faults = real.frame("fault")
    assert (faults["what"] == "refused").sum() >= 3
    assert (faults["what"] == "duplicate").sum() >= 1
    assert faults["detail"].str.len_chars().min() > 10


def _shout(path: Path) -> None:
    import paho.mqtt.client as mqtt

    from flame.runtime.transport import chunks, envelope
    from flame.runtime.transport.envelope import Envelope

    zero = Tensor("float64", (60,), bytes(480))
    update = codec.encode(Update(999_999, 0, 0, 0, 0, Payload("dense", {"delta": zero}), 8, 0.0, 0.0, 0.0))
    assign = codec.encode(Assign(999_998, 0, 0, 0, 0, 0, 1, 0, Payload("none")))

    def frame(run: str, src: str, data: bytes) -> bytes:
        packed = envelope.pack(Envelope(run, src, "aggregator", "x"), [data])
        return next(chunks.split(packed, chunks.sender_of(run, src, "x"), hash(data) & 0xFFFF, 1 << 20))

    topic = f"flame/{path.name}/to/aggregator"
    good = frame(path.name, "t0", update)
    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, "stranger")
    client.connect("127.0.0.1", _port(path))
    client.loop_start()
    for payload in (b"", b"garbage", good[:-7], frame("another_run", "t0", update), good, frame(path.name, "t0", assign)):
        client.publish(topic, payload, qos=1).wait_for_publish(10)
    client.loop_stop()
    client.disconnect()


def _port(path: Path) -> int:
    broker = psutil.Process(launched(path)["broker"])
    family = [broker, *broker.children(recursive=True)]
    return next(c.laddr.port for process in family for c in process.net_connections("tcp") if c.status == psutil.CONN_LISTEN)


def test_a_first_process_that_does_not_come_up_is_said_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("flame.launch.processes.fleet.FOUND_WAIT_S", 0.0)
    real = run_for_real(condition(ASYNC), tmp_path)
    assert real.verdict == "CRASH"
    assert "the aggregator's process wasn't up after 0 s" in real.reason
    assert "hint:" in real.reason
