"""Brokers behind one small interface: `embedded`, `mosquitto`, or the address of a running one.

The first two are private to a run: a process of their own on a free loopback port, in a process group
of their own (a Ctrl-C at the launcher's terminal must not end them before the run), with their log and
configuration in the run's folder. They end when the process that started them does (its end of a pipe
closes), and can be started again on the same port. Neither remembers anything over a restart: clients
subscribe and announce themselves again.
"""

import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Protocol

from flame.config.condition import Limits
from flame.runtime.transport.access import ANYBODY, Access
from flame.runtime.transport.mqtt import MAX_RETAINED
from flame.runtime.transport.probe import probe

LOOPBACK = "127.0.0.1"
STOP_GRACE_S = 3.0
POLL_S = 0.02
PORT_TRIES = 3
MOSQUITTO_PATHS = "/usr/sbin:/usr/local/sbin:/opt/homebrew/sbin"
ENVELOPE_ROOM = 2 << 20
QUEUED_MESSAGES = 10_000
QUEUED_BYTES = 256 << 20


class BrokerError(Exception):
    """A broker can't be had. str() says which, why, and a remedy."""


class Broker(Protocol):
    """A broker, wherever it runs."""

    host: str
    port: int

    def start(self, timeout_s: float) -> None:
        """Return when it answers MQTT. Raises BrokerError otherwise, after `timeout_s` at the latest."""
        ...

    def alive(self) -> bool:
        """Whether it is there."""
        ...

    def restart(self, timeout_s: float = 10.0) -> None:
        """Stop it if need be and start it on the same port. Raises BrokerError."""
        ...

    def stop(self) -> None:
        """End it, if it is ours. Doesn't raise."""
        ...

    @property
    def pid(self) -> int | None:
        """Its process, None where it isn't ours or isn't running."""
        ...


def open_broker(spec: str, folder: Path, limits: Limits, group: int | None = None, access: Access = ANYBODY) -> Broker:
    """The broker that `spec` names, not started yet.

    spec: `embedded`, `mosquitto` or HOST:PORT. folder: takes configuration and log. group: process
    group for the processes of a private broker, 0 for one of its own, None for the caller's. access: to
    one that others run.
    Raises BrokerError for a spec that can't work.
    """
    if spec == "embedded":
        command = [sys.executable, "-m", "flame.runtime.brokers.embedded", "--expiry-s", str(limits.session_expiry_s), "--port"]
        return PrivateBroker("embedded", lambda port: [*command, str(port)], folder, group)
    if spec == "mosquitto":
        program = _mosquitto()
        return PrivateBroker("mosquitto", lambda port: _mosquitto_command(program, port, folder, limits), folder, group)
    return ExternalBroker(*address(spec), access)


# --- mosquitto ---


def find_mosquitto() -> str | None:
    """Path of the program, None where it isn't installed; Debian puts it where a user's PATH doesn't look."""
    return shutil.which("mosquitto") or shutil.which("mosquitto", path=MOSQUITTO_PATHS)


def _mosquitto() -> str:
    program = find_mosquitto()
    if program is None:
        raise BrokerError("mosquitto isn't installed\nhint: apt-get install mosquitto, or use --broker embedded")
    return program


def _mosquitto_command(program: str, port: int, folder: Path, limits: Limits) -> list[str]:
    """Write the configuration and name the command, under a guard that ends it with us."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "mosquitto.conf"
    path.write_text(mosquitto_configuration(port, limits))
    return [sys.executable, "-m", "flame.runtime.brokers.guard", program, "-c", str(path)]


def mosquitto_configuration(port: int, limits: Limits) -> str:
    """A private broker: loopback only, nothing on disk, bounded queues, persistent sessions that expire (in whole hours)."""
    lines = [
        f"listener {port} {LOOPBACK}",
        "allow_anonymous true",
        "persistence false",
        f"persistent_client_expiration {-(-limits.session_expiry_s // 3600)}h",
        f"max_packet_size {max(limits.chunk_bytes, MAX_RETAINED) + ENVELOPE_ROOM}",
        "max_inflight_messages 64",
        f"max_queued_messages {QUEUED_MESSAGES}",
        f"max_queued_bytes {QUEUED_BYTES}",
        "set_tcp_nodelay true",
        "sys_interval 0",
        "connection_messages false",
        "log_dest stderr",
        *(f"log_type {kind}" for kind in ("error", "warning", "notice")),
    ]
    if os.geteuid() == 0:
        lines.append("user root")
    return "\n".join(lines) + "\n"


# --- a broker of our own ---


@dataclass(slots=True)
class PrivateBroker:
    """A broker in a process of its own. command: how to start it on a port."""

    name: str
    command: Callable[[int], Sequence[str]]
    folder: Path
    group: int | None = None
    host: str = LOOPBACK
    port: int = 0
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    def start(self, timeout_s: float) -> None:
        """Start it on `port`, or on a free one if that is 0. Raises BrokerError with the end of its log."""
        deadline = monotonic() + timeout_s
        tries = 1 if self.port else PORT_TRIES
        for attempt in range(1, tries + 1):
            port = self.port or _free_port()
            self._await_free(port, deadline)
            self._spawn(port)
            if self._answers(port, deadline):
                self.port = port
                return
            why = self._ending(timeout_s)
            self.stop()
            if attempt == tries or monotonic() >= deadline:
                raise BrokerError(f"the {self.name} broker didn't start on {self.host}:{port}: {why}\nhint: see {self.log}")

    def alive(self) -> bool:
        """Whether its process runs."""
        return self._process is not None and self._process.poll() is None

    def restart(self, timeout_s: float = 10.0) -> None:
        """Start it again on the same port, ending it first if need be. Raises BrokerError."""
        self.stop()
        self.start(timeout_s)

    def stop(self) -> None:
        """End its process: politely, then not."""
        process, self._process = self._process, None
        if process is None:
            return
        with suppress(OSError):
            process.stdin.close()  # type: ignore[union-attr]
        process.terminate()
        try:
            process.wait(STOP_GRACE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    @property
    def pid(self) -> int | None:
        """Its process id, None when it doesn't run."""
        return self._process.pid if self._process is not None and self.alive() else None

    @property
    def log(self) -> Path:
        """What it wrote."""
        return self.folder / "broker.log"

    def _spawn(self, port: int) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        command = self.command(port)
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log, process_group=self.group)

    def _answers(self, port: int, deadline: float) -> bool:
        """Whether it answers before its process ends and before `deadline`."""
        while self._process is not None and monotonic() < deadline:
            with suppress(OSError):
                probe(self.host, port, min(1.0, max(0.05, deadline - monotonic())))
                return self.alive()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(POLL_S)
                return False
        return False

    def _ending(self, timeout_s: float) -> str:
        code = self._process.poll() if self._process is not None else None
        what = f"no answer within {timeout_s:g} s" if code is None else f"its process ended with code {code}"
        lines = self.log.read_text(errors="replace").splitlines()[-5:] if self.log.exists() else []
        return "\n  ".join([what, *lines])

    def _await_free(self, port: int, deadline: float) -> None:
        """Wait for a killed predecessor to let go of the port. Raises BrokerError when somebody else has it."""
        while not _is_free(port):
            if monotonic() >= deadline:
                raise BrokerError(
                    f"port {port} for the {self.name} broker is taken by another program\nhint: end that program, or start a new run"
                )
            threading.Event().wait(POLL_S)


def _free_port() -> int:
    with socket.socket() as trial:
        trial.bind((LOOPBACK, 0))
        return int(trial.getsockname()[1])


def _is_free(port: int) -> bool:
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with suppress(OSError):
            trial.bind((LOOPBACK, port))
            return True
    return False


# --- somebody else's ---


def address(spec: str) -> tuple[str, int]:
    """Host and port of HOST:PORT; an IPv6 address stands in brackets."""
    host, colon, port = spec.rpartition(":")
    if not colon or not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise BrokerError(f"`{spec}` is no broker\nhint: --broker embedded, mosquitto, or HOST:PORT such as localhost:1883")
    return host.removeprefix("[").removesuffix("]"), int(port)


@dataclass(slots=True)
class ExternalBroker:
    """A broker that others run: only asked whether it is there."""

    host: str
    port: int
    access: Access = ANYBODY

    def start(self, timeout_s: float) -> None:
        """Ask it. Raises BrokerError when it doesn't answer."""
        try:
            probe(self.host, self.port, timeout_s, access=self.access)
        except OSError as error:
            raise BrokerError(
                f"no MQTT broker answers at {self.host}:{self.port}: {error}\n"
                "hint: start it, correct --broker HOST:PORT, or use --broker embedded"
            ) from error

    def alive(self) -> bool:
        """Whether it answers now."""
        with suppress(OSError):
            probe(self.host, self.port, 1.0, access=self.access)
            return True
        return False

    def restart(self, timeout_s: float = 10.0) -> None:
        """It isn't ours. Raises BrokerError."""
        raise BrokerError(f"the broker at {self.host}:{self.port} isn't ours to restart\nhint: start it by hand, or use --broker embedded")

    def stop(self) -> None:
        """Nothing: it isn't ours."""

    @property
    def pid(self) -> int | None:
        """None."""
        return None
