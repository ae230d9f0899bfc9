"""A broker in memory: what the transport needs of MQTT, and nothing that a network adds.

Held to the same suite as the real brokers (test_transport.py), so that tests may stand on it. A hub
keeps subscriptions, retained messages and wills; a link hands on what is published in the publishing
thread, through its mailbox.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from time import monotonic_ns

from flame.runtime.transport.link import Connected, Disconnected, Raw, TransportError, Wiring


@dataclass(slots=True)
class Hub:
    """What all links of a test share."""

    up: bool = True
    retained: dict[str, bytes] = field(default_factory=dict)
    links: "list[LoopbackLink]" = field(default_factory=list)

    def publish(self, topic: str, payload: bytes, retain: bool = False) -> None:
        """Hand `payload` to everybody who subscribed to `topic`."""
        if retain and payload:
            self.retained[topic] = payload
        elif retain:
            self.retained.pop(topic, None)
        for link in self.links:
            if any(matches(pattern, topic) for pattern in link.wiring.filters):
                link.deliver(topic, payload)

    def crash(self) -> None:
        """Everything is forgotten and everybody loses the connection."""
        self.up = False
        self.retained.clear()
        for link in self.links:
            link.lose("the hub is gone")

    def restart(self) -> None:
        """Everybody is back, with nothing retained."""
        self.up = True
        for link in self.links:
            link.regain()


def matches(pattern: str, topic: str) -> bool:
    """Whether `topic` is one of those that the filter `pattern` names."""
    wanted, levels = pattern.split("/"), topic.split("/")
    if wanted[-1] == "#":
        return levels[: len(wanted) - 1] == wanted[:-1]
    return len(wanted) == len(levels) and all(want in ("+", level) for want, level in zip(wanted, levels, strict=True))


class LoopbackLink:
    """A Link on a hub."""

    def __init__(self, hub: Hub, wiring: Wiring) -> None:
        self.hub, self.wiring = hub, wiring
        self._connected = False
        self._outbox: list[tuple[str, bytes, bool]] = []
        self._kept: list[tuple[str, bytes]] = []

    def connect(self, timeout_s: float) -> None:
        """Subscribe and take what is retained."""
        if not self.hub.up:
            raise TransportError(f"`{self.wiring.client_id}` can't reach a broker at {self.wiring.host}:{self.wiring.port}\nhint: start it")
        self.hub.links.append(self)
        self._connected = True
        self.wiring.put(Connected(again=False))
        self._take_retained()

    def publish(self, topic: str, payloads: Iterable[bytes], retain: bool = False) -> None:
        """Now, or when the connection is back."""
        for payload in payloads:
            if self._connected:
                self.hub.publish(topic, payload, retain)
            else:
                self._outbox.append((topic, payload, retain))

    def hint(self, topic: str, payload: bytes) -> bool:
        """Now or never."""
        if self._connected:
            self.hub.publish(topic, payload)
        return self._connected

    def flush(self, timeout_s: float) -> bool:
        """Everything that was published while connected has arrived."""
        return self._connected

    def close(self, timeout_s: float) -> None:
        """Leave without a will."""
        if self in self.hub.links:
            self.hub.links.remove(self)
        self._connected = False

    # --- what the hub does to it ---

    def deliver(self, topic: str, payload: bytes) -> None:
        """Put it into the mailbox, or keep it for later."""
        if self._connected:
            self.wiring.put(Raw(topic, payload, monotonic_ns()))
        else:
            self._kept.append((topic, payload))

    def lose(self, why: str) -> None:
        """The connection is gone."""
        self._connected = False
        self.wiring.put(Disconnected(why))

    def die(self) -> None:
        """The process is gone: the hub publishes its will."""
        self.close(0.0)
        if self.wiring.will:
            self.hub.publish(*self.wiring.will, retain=True)

    def regain(self) -> None:
        """The connection is back."""
        self._connected = True
        self.wiring.put(Connected(again=True))
        for topic, payload in self._kept:
            self.deliver(topic, payload)
        self._kept.clear()
        self._take_retained()
        waiting, self._outbox = self._outbox, []
        for topic, payload, retain in waiting:
            self.hub.publish(topic, payload, retain)

    def _take_retained(self) -> None:
        for topic, payload in sorted(self.hub.retained.items()):
            if any(matches(pattern, topic) for pattern in self.wiring.filters):
                self.deliver(topic, payload)
