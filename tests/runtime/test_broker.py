"""Brokers: one interface, bounded starts, errors with a remedy, and no process left behind."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import monotonic

import psutil
import pytest

from flame.config.condition import Limits
from flame.runtime.brokers import broker as broker_module
from flame.runtime.brokers.broker import BrokerError, ExternalBroker, PrivateBroker, mosquitto_configuration, open_broker
from flame.runtime.transport.probe import probe

BOUND_S = 10.0
KINDS = [
    pytest.param("embedded", marks=pytest.mark.real),
    pytest.param(
        "mosquitto",
        marks=[
            pytest.mark.real,
            pytest.mark.skipif(not broker_module.find_mosquitto(), reason="mosquitto isn't installed (apt-get install mosquitto)"),
        ],
    ),
]


def opened(kind: str, folder: Path, group: int | None = None) -> PrivateBroker:
    made = open_broker(kind, folder, Limits(), group)
    assert isinstance(made, PrivateBroker)
    return made


def wait_until(holds: Callable[[], bool], bound_s: float = BOUND_S) -> None:
    """Return when `holds`, looking again whenever a millisecond has gone; fails after `bound_s`."""
    deadline = monotonic() + bound_s
    while not holds():
        assert monotonic() < deadline, f"still not after {bound_s} s"
        psutil.Process().cpu_percent(interval=0.01)


def family(pid: int) -> list[psutil.Process]:
    process = psutil.Process(pid)
    return [process, *process.children(recursive=True)]


def gone(processes: list[psutil.Process]) -> bool:
    return not psutil.wait_procs(processes, timeout=0.01)[1] or all(
        not process.is_running() or process.status() == psutil.STATUS_ZOMBIE for process in processes
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_private_broker_starts_answers_restarts_on_its_port_and_stops(kind: str, tmp_path: Path) -> None:
    made = opened(kind, tmp_path / "run")
    assert (made.alive(), made.pid) == (False, None)
    made.start(BOUND_S)
    port, first = made.port, made.pid
    assert made.alive()
    assert first is not None
    probe(made.host, port, 1.0)
    processes = family(first)
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: not made.alive())
    made.restart(BOUND_S)
    assert (made.port, made.alive()) == (port, True)
    assert made.pid != first
    probe(made.host, port, 1.0)
    assert gone(processes)
    processes = family(made.pid or 0)
    made.stop()
    assert gone(processes)
    assert (made.alive(), made.pid) == (False, None)
    made.stop()


@pytest.mark.parametrize("kind", KINDS)
def test_a_broker_ends_with_who_started_it_even_by_kill_9(kind: str, tmp_path: Path) -> None:
    code = (
        "import sys, pathlib, threading; from flame.config.condition import Limits; from flame.runtime.brokers.broker import open_broker;"
        "b = open_broker(sys.argv[1], pathlib.Path(sys.argv[2]), Limits()); b.start(10.0); print(b.pid, flush=True);"
        "threading.Event().wait(60)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code, kind, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    processes = family(int(parent.stdout.readline()))
    parent.kill()
    parent.wait(BOUND_S)
    parent.stdout.close()
    wait_until(lambda: gone(processes))


@pytest.mark.parametrize("kind", KINDS)
def test_a_broker_joins_the_group_of_the_run(kind: str, tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, process_group=0) as leader:
        made = opened(kind, tmp_path, leader.pid)
        made.start(BOUND_S)
        assert {os.getpgid(process.pid) for process in family(made.pid or 0)} == {leader.pid}
        processes = family(made.pid or 0)
        os.killpg(leader.pid, signal.SIGTERM)
        wait_until(lambda: not made.alive() and gone(processes))
        made.stop()


@pytest.mark.parametrize("kind", KINDS)
def test_a_taken_port_is_an_error_in_time_that_says_what_to_do(kind: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        made = opened(kind, tmp_path)
        made.port = other.getsockname()[1]
        start = monotonic()
        with pytest.raises(BrokerError, match=rf"port {made.port} for the {kind} broker is taken by another program(.|\n)*hint:"):
            made.start(0.3)
        assert monotonic() - start < 3.0
    assert not made.alive()


def test_a_program_that_ends_at_once_is_reported_with_the_end_of_its_log(tmp_path: Path) -> None:
    made = PrivateBroker("broken", lambda port: [sys.executable, "-c", f"raise SystemExit('no port {port} for me')"], tmp_path)
    with pytest.raises(BrokerError, match=r"the broken broker didn't start on 127\.0\.0\.1:\d+: its process ended with code 1\n  .*for me"):
        made.start(BOUND_S)
    assert not made.alive()


def test_a_program_that_never_answers_is_given_up_in_time_and_ended(tmp_path: Path) -> None:
    made = PrivateBroker("silent", lambda port: [sys.executable, "-c", "input()"], tmp_path)
    start = monotonic()
    with pytest.raises(BrokerError, match=r"no answer within 0\.3 s(.|\n)*broker\.log"):
        made.start(0.3)
    assert monotonic() - start < 4.0
    assert not made.alive()


def test_without_mosquitto_the_remedy_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(broker_module, "MOSQUITTO_PATHS", str(tmp_path))
    with pytest.raises(BrokerError, match=r"apt-get install mosquitto, or use --broker embedded"):
        open_broker("mosquitto", tmp_path, Limits())


def test_mosquittos_sessions_expire_and_its_limits_follow_the_chunks() -> None:
    text = mosquitto_configuration(1999, Limits(session_expiry_s=3601, chunk_bytes=8 << 20))
    assert "listener 1999 127.0.0.1\n" in text
    assert "persistent_client_expiration 2h\n" in text
    assert f"max_packet_size {10 << 20}\n" in text


@pytest.mark.parametrize("spec", ["", "rabbit", "host:", ":1883", "host:0", "host:99999", "host:x"])
def test_what_is_no_broker_is_refused_with_examples(spec: str, tmp_path: Path) -> None:
    with pytest.raises(BrokerError, match=r"is no broker\nhint: --broker embedded, mosquitto, or HOST:PORT"):
        open_broker(spec, tmp_path, Limits())


def test_an_address_is_taken_apart(tmp_path: Path) -> None:
    assert open_broker("example.org:1883", tmp_path, Limits()) == ExternalBroker("example.org", 1883)
    assert open_broker("[::1]:1884", tmp_path, Limits()) == ExternalBroker("::1", 1884)


@pytest.mark.real
def test_a_broker_of_others_is_only_asked(tmp_path: Path) -> None:
    made = opened("embedded", tmp_path)
    made.start(BOUND_S)
    external = open_broker(f"{made.host}:{made.port}", tmp_path, Limits())
    external.start(1.0)
    assert (external.alive(), external.pid) == (True, None)
    external.stop()
    assert made.alive()
    with pytest.raises(BrokerError, match="isn't ours to restart"):
        external.restart()
    made.stop()
    assert not external.alive()
    with pytest.raises(BrokerError, match=rf"no MQTT broker answers at {made.host}:{made.port}: .*refused\nhint: start it"):
        external.start(1.0)


@pytest.mark.parametrize(
    ("answer", "says"), [(b"HTTP/1.1 400 Bad Request", "no MQTT broker"), (b"", "closed"), (b"\x20\x02\x00\x05", "not authorised")]
)
def test_the_probe_tells_what_is_no_broker(answer: bytes, says: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = subprocess.Popen(
            [sys.executable, "-c", f"from flame.runtime.transport.probe import probe; probe('127.0.0.1', {server.getsockname()[1]}, 5.0)"],
            stderr=subprocess.PIPE,
            text=True,
        )
        with server.accept()[0] as connection:
            connection.recv(100)
            connection.sendall(answer)
        assert says in client.communicate(timeout=BOUND_S)[1]
