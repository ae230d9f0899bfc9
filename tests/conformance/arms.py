"""The brokers that the suite is run against, behind one interface, and a process's end of the transport.

Nothing here sleeps: every wait is for a condition, with a bound.
"""

import os
import queue
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Protocol

import paho.mqtt.publish

from flame.config.condition import Limits
from flame.core.messages import Presence
from flame.core.profile import Profile
from flame.runtime.brokers.broker import PrivateBroker, find_mosquitto, open_broker
from flame.runtime.transport.link import Connected, Disconnected, Link, Mail, MqttLink, Raw, Wiring
from flame.runtime.transport.mqtt import Inbound, MqttTransport, Refused

from .loopback import Hub, LoopbackLink

BOUND_S = 10.0
Seen = Inbound | Refused | Connected | Disconnected


@dataclass(slots=True)
class Peer:
    """A process's end: a transport, its mailbox, and what was taken out of that."""

    transport: MqttTransport
    mailbox: "queue.Queue[Mail]"
    seen: list[Seen] = field(default_factory=list)

    def until(self, wanted: Callable[[Seen], bool], bound_s: float = BOUND_S) -> Seen:
        """The next thing that is `wanted`; all that comes is kept in `seen`. Fails after `bound_s`."""
        deadline = monotonic() + bound_s
        while True:
            try:
                mail = self.mailbox.get(timeout=max(0.001, deadline - monotonic()))
            except queue.Empty:
                raise AssertionError(f"{self.transport.name} waited {bound_s} s; seen: {self.seen[-5:]}") from None
            opened = self.transport.open(mail) if isinstance(mail, Raw) else mail
            if opened is not None:
                self.seen.append(opened)
                if wanted(opened):
                    return opened

    def inbound(self, kind: str = "message") -> Inbound:
        """The next Inbound of `kind`."""
        found = self.until(lambda seen: isinstance(seen, Inbound) and seen.kind == kind)
        assert isinstance(found, Inbound)
        return found

    def refused(self) -> Refused:
        """The next Refused."""
        found = self.until(lambda seen: isinstance(seen, Refused))
        assert isinstance(found, Refused)
        return found

    def presences(self) -> list[Presence]:
        """What this end, a worker, would announce."""
        life = self.transport.incarnation
        return [Presence(node, life, Profile(node, 1_000), "init", "data", "code") for node in self.transport.nodes]


class Arm(Protocol):
    """A broker under test."""

    host: str
    port: int
    link_of: Callable[[Wiring], Link]

    def publish(self, topic: str, payload: bytes, retain: bool = False) -> None:
        """Publish as a stranger would, with a client that knows nothing of this project."""
        ...

    def crash(self) -> None:
        """Kill the broker with -9; clients notice."""
        ...

    def restart(self) -> None:
        """Start it again at the same address; clients reconnect."""
        ...

    def cut(self, peer: Peer) -> None:
        """Break `peer`'s connection; it reconnects by itself."""
        ...

    def kill_a_worker(self, run: str, name: str, nodes: Sequence[str], announced: Callable[[], None]) -> None:
        """Let a worker announce itself, call `announced`, and end the worker without a goodbye."""
        ...


@dataclass(slots=True)
class Loopback:
    """The broker in memory."""

    hub: Hub = field(default_factory=Hub)
    host: str = "memory"
    port: int = 1

    @property
    def link_of(self) -> Callable[[Wiring], Link]:
        return lambda wiring: LoopbackLink(self.hub, wiring)

    def publish(self, topic: str, payload: bytes, retain: bool = False) -> None:
        self.hub.publish(topic, payload, retain)

    def crash(self) -> None:
        self.hub.crash()

    def restart(self) -> None:
        self.hub.restart()

    def cut(self, peer: Peer) -> None:
        link = peer.transport._link
        assert isinstance(link, LoopbackLink)
        link.lose("cut")
        link.regain()

    def kill_a_worker(self, run: str, name: str, nodes: Sequence[str], announced: Callable[[], None]) -> None:
        worker = connect(self, run, name, nodes)
        worker.transport.announce(worker.presences())
        announced()
        link = worker.transport._link
        assert isinstance(link, LoopbackLink)
        link.die()


@dataclass(slots=True)
class Mqtt:
    """A real broker in a process of its own."""

    broker: PrivateBroker

    link_of: Callable[[Wiring], Link] = MqttLink

    @property
    def host(self) -> str:
        return self.broker.host

    @property
    def port(self) -> int:
        return self.broker.port

    def publish(self, topic: str, payload: bytes, retain: bool = False) -> None:
        paho.mqtt.publish.single(topic, payload, qos=1, retain=retain, hostname=self.host, port=self.port)

    def crash(self) -> None:
        pid = self.broker.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)

    def restart(self) -> None:
        self.broker.restart(BOUND_S)

    def cut(self, peer: Peer) -> None:
        link = peer.transport._link
        assert isinstance(link, MqttLink)
        connection = link._client.socket()
        assert connection is not None
        connection.shutdown(socket.SHUT_RDWR)

    def kill_a_worker(self, run: str, name: str, nodes: Sequence[str], announced: Callable[[], None]) -> None:
        command = [sys.executable, "-m", f"{__package__}.departing_worker", run, name, self.host, str(self.port), *nodes]
        process = subprocess.Popen(command, cwd=Path(__file__).parents[len(__package__.split("."))])
        announced()
        process.kill()
        process.wait(BOUND_S)


def open_arm(name: str, folder: Path) -> tuple[Arm, Callable[[], None]]:
    """The arm `name`, started, and what ends it."""
    if name == "loopback":
        return Loopback(), lambda: None
    broker = open_broker(name, folder, Limits())
    assert isinstance(broker, PrivateBroker)
    broker.start(BOUND_S)
    return Mqtt(broker), broker.stop


def missing(name: str) -> str | None:
    """Why this arm can't be tried on this machine, None where it can."""
    if name == "mosquitto" and not find_mosquitto():
        return "mosquitto isn't installed (apt-get install mosquitto)"
    return None


def connect(
    arm: Arm, run: str, name: str, nodes: Sequence[str], *, listens: bool = False, limits: Limits | None = None, incarnation: str = "i1"
) -> Peer:
    """A process's end, connected."""
    mailbox: queue.Queue[Mail] = queue.Queue()
    transport = MqttTransport(run, name, incarnation, arm.host, arm.port, nodes, mailbox.put, limits or Limits(), listens, arm.link_of)
    peer = Peer(transport, mailbox)
    transport.connect(BOUND_S)
    peer.until(lambda seen: isinstance(seen, Connected))
    return peer


def retained(arm: Arm, run: str) -> set[str]:
    """Topics of `run` on which something is retained."""
    mailbox: queue.Queue[Mail] = queue.Queue()
    link = arm.link_of(Wiring(f"look-{run}", arm.host, arm.port, [f"flame/{run}/#"], f"look/{run}", None, mailbox.put))
    link.connect(BOUND_S)
    assert link.flush(BOUND_S)
    link.close(BOUND_S)
    found = [mailbox.get_nowait() for _ in range(mailbox.qsize())]
    return {mail.topic for mail in found if isinstance(mail, Raw) and mail.payload}
