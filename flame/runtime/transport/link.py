"""One MQTT connection on paho: a bounded connect, and one order of sending through every reconnect.

Paho's thread owns the socket. What it reports is put into a mailbox and handled by whoever empties
that; its callbacks subscribe, move the gate below, and do nothing else.

The gate. Paho queues what is published while it is disconnected, but between the opening of a new
socket and the CONNACK it sends new messages at once, before the older ones that wait for the CONNACK,
and even before its own CONNECT. So nothing is given to paho unless the connection is ready:

    not ready   publish -> outbox
    CONNACK     paho repeats what was not acknowledged; we subscribe again
    SUBACK      outbox -> paho, then ready
    lost        not ready; what paho holds it will repeat

A message may come twice (QoS 1), and chunk ids make that harmless. What is held is bounded in number
and in bytes, here and in paho together.
"""

import socket
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic, monotonic_ns
from typing import Any, Protocol

from paho.mqtt.client import Client, ConnectFlags, DisconnectFlags, MQTTMessage, MQTTv311
from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode

from flame.runtime.transport.access import ANYBODY, Access
from flame.runtime.transport.probe import probe

KEEPALIVE_S = 20
INFLIGHT = 64
MAX_QUEUED = 10_000
MAX_QUEUED_BYTES = 1 << 30
FIRST_DELAY_S, LAST_DELAY_S = 0.05, 2.0
CONNECT_TIMEOUT_S = 5.0


class TransportError(Exception):
    """The transport can't do what was asked. str() says with whom, what was tried, and a remedy."""


@dataclass(frozen=True, slots=True)
class Raw:
    """A packet, as it came. at_ns: monotonic ns of its arrival."""

    topic: str
    payload: bytes
    at_ns: int


@dataclass(frozen=True, slots=True)
class Connected:
    """Connected and subscribed. again: it had been before, and the broker may have lost what it retained."""

    again: bool


@dataclass(frozen=True, slots=True)
class Disconnected:
    """The connection is lost; it is being renewed."""

    why: str


Mail = Raw | Connected | Disconnected


@dataclass(frozen=True, slots=True)
class Wiring:
    """What a link is made of. will: topic and payload that the broker shall retain when this client is lost."""

    client_id: str
    host: str
    port: int
    filters: Sequence[str]
    echo: str
    will: tuple[str, bytes] | None
    put: Callable[[Mail], None]
    access: Access = ANYBODY


class Link(Protocol):
    """A connection to a broker, or to what stands for one in tests."""

    def connect(self, timeout_s: float) -> None:
        """Return when connected and subscribed. Raises TransportError when that took longer than `timeout_s`."""
        ...

    def publish(self, topic: str, payloads: Iterable[bytes], retain: bool = False) -> None:
        """Send `payloads` in order, at least once each. Never waits. Raises TransportError when the queue is full."""
        ...

    def hint(self, topic: str, payload: bytes) -> bool:
        """Send at most once, and only if connected now; False if not."""
        ...

    def flush(self, timeout_s: float) -> bool:
        """Wait until the broker has handled all that was published; False if it didn't within `timeout_s`."""
        ...

    def close(self, timeout_s: float) -> None:
        """Say goodbye, so that no will is sent, and make the broker forget this client."""
        ...


class MqttLink:
    """A Link on paho-mqtt: MQTT 3.1.1, persistent session, QoS 1."""

    def __init__(self, wiring: Wiring) -> None:
        self._wiring = wiring
        self._lock = threading.Lock()
        self._ready = False
        self._was_ready = False
        self._closing = False
        self._refused: str | None = None
        self._changed = threading.Event()
        self._outbox: deque[tuple[str, bytes, bool]] = deque()
        self._sizes: dict[int, int] = {}
        self._acked: deque[int] = deque()
        self._held_bytes = 0
        self._echoes_sent = 0
        self._echo_seen = threading.Condition()
        self._echoes_seen = 0
        self._client = self._make_client()

    def _make_client(self) -> Client:
        client = Client(CallbackAPIVersion.VERSION2, self._wiring.client_id, clean_session=False, protocol=MQTTv311)
        client.max_inflight_messages_set(INFLIGHT)
        client.reconnect_delay_set(1, 8)
        client.on_connect = self._on_connect
        client.on_subscribe = self._on_subscribe
        client.on_disconnect = self._on_disconnect
        client.on_message = self._on_message
        client.on_publish = self._on_publish
        client.on_socket_open = self._on_socket_open
        access, context = self._wiring.access, self._wiring.access.context()
        if access.user is not None:
            client.username_pw_set(access.user, access.password)
        if context is not None:
            client.tls_set_context(context)
        if self._wiring.will:
            client.will_set(*self._wiring.will, qos=1, retain=True)
        return client

    # --- connecting ---

    def connect(self, timeout_s: float) -> None:
        """Connect, wait for CONNACK and SUBACK. Raises TransportError after `timeout_s`, or when refused."""
        deadline = monotonic() + timeout_s
        self._open_socket(deadline, timeout_s)
        self._client.loop_start()
        self._changed.wait(max(0.0, deadline - monotonic()))
        if self._refused or not self._ready:
            self._stop()
            why = self._refused or f"it accepted the connection, but sent no CONNACK and SUBACK within {timeout_s:g} s"
            hint = "check the user and its password" if self._refused else "is that an MQTT 3.1.1 broker?"
            raise TransportError(f"{self._who} can't use the broker at {self._at}: {why}\nhint: {hint}")

    def _open_socket(self, deadline: float, timeout_s: float) -> None:
        """Try with exponential back-off until `deadline`."""
        tries, delay = 0, FIRST_DELAY_S
        self._client.connect_timeout = min(CONNECT_TIMEOUT_S, timeout_s)
        while True:
            tries += 1
            try:
                self._client.connect(self._wiring.host, self._wiring.port, KEEPALIVE_S)
            except OSError as error:
                if monotonic() + delay >= deadline:
                    raise TransportError(
                        f"{self._who} can't reach a broker at {self._at}: {tries} tries in {timeout_s:g} s, the last: {error}\n"
                        "hint: start the broker, or correct its HOST:PORT"
                    ) from error
                self._changed.wait(delay)
                delay = min(2 * delay, LAST_DELAY_S)
            else:
                return

    @property
    def _who(self) -> str:
        return f"`{self._wiring.client_id}`"

    @property
    def _at(self) -> str:
        return f"{self._wiring.host}:{self._wiring.port}"

    # --- sending ---

    def publish(self, topic: str, payloads: Iterable[bytes], retain: bool = False) -> None:
        """Send all of `payloads` or none, in order, QoS 1. Raises TransportError when the queue is full."""
        batch = list(payloads)
        with self._lock:
            self._check_room(topic, batch)
            for payload in batch:
                self._put(topic, payload, retain)

    def _put(self, topic: str, payload: bytes, retain: bool) -> None:
        """Through the gate, or into the outbox before it. The lock is held."""
        self._held_bytes += len(payload)
        if self._ready:
            self._give(topic, payload, retain)
        else:
            self._outbox.append((topic, payload, retain))

    def _check_room(self, topic: str, batch: Sequence[bytes]) -> None:
        while self._acked:
            self._held_bytes -= self._sizes.pop(self._acked.popleft(), 0)
        number = len(self._sizes) + len(self._outbox) + len(batch)
        nbytes = self._held_bytes + sum(map(len, batch))
        if number > MAX_QUEUED or nbytes > MAX_QUEUED_BYTES:
            state = "connected, but slower than this" if self._ready else "disconnected"
            raise TransportError(
                f"{self._who} has {number} packets of {nbytes} bytes waiting for the broker at {self._at}, one more to {topic} is over "
                f"{MAX_QUEUED} or {MAX_QUEUED_BYTES} bytes; it is {state}\nhint: see the broker's log; send fewer or smaller messages"
            )

    def _give(self, topic: str, payload: bytes, retain: bool) -> None:
        """Give one packet to paho, which holds it until it is acknowledged. The lock is held."""
        info = self._client.publish(topic, payload, qos=1, retain=retain)
        if info.rc not in (MQTTErrorCode.MQTT_ERR_SUCCESS, MQTTErrorCode.MQTT_ERR_NO_CONN):
            raise TransportError(f"{self._who} can't publish to {topic} at {self._at}: {info.rc.name}")
        self._sizes[info.mid] = len(payload)

    def hint(self, topic: str, payload: bytes) -> bool:
        """Send once, QoS 0, if connected; False if not."""
        with self._lock:
            return self._ready and self._client.publish(topic, payload, qos=0).rc == MQTTErrorCode.MQTT_ERR_SUCCESS

    def flush(self, timeout_s: float) -> bool:
        """Send something to ourselves and wait for it: a broker handles what one client sends in order.

        It may pass the bound of what waits: a full link has to be able to close.
        """
        with self._lock:
            self._echoes_sent += 1
            number = self._echoes_sent
            self._put(self._wiring.echo, str(number).encode(), retain=False)
        with self._echo_seen:
            return self._echo_seen.wait_for(lambda: self._echoes_seen >= number, timeout_s)

    def close(self, timeout_s: float) -> None:
        """Disconnect in order and forget the session at the broker; nothing is raised if that is gone."""
        if self._ready:
            self.flush(timeout_s)
        self._stop()
        with suppress(OSError):
            probe(self._wiring.host, self._wiring.port, timeout_s, self._wiring.client_id, self._wiring.access)

    def _stop(self) -> None:
        self._closing = True
        self._client.disconnect()
        self._client.loop_stop()

    # --- what paho's thread says ---

    def _on_connect(self, client: Client, data: Any, flags: ConnectFlags, reason: ReasonCode, properties: Properties | None) -> None:
        if reason.is_failure:
            self._refused = f"it refused the connection: {reason}"
            self._changed.set()
        else:
            client.subscribe([(topic, 1) for topic in (*self._wiring.filters, self._wiring.echo)])

    def _on_subscribe(self, client: Client, data: Any, mid: int, reasons: list[ReasonCode], properties: Properties | None) -> None:
        refused = [topic for topic, reason in zip((*self._wiring.filters, self._wiring.echo), reasons, strict=False) if reason.is_failure]
        if refused:
            self._refused = f"it refused the subscription to {', '.join(refused)}"
        else:
            with self._lock:
                while self._outbox:
                    self._give(*self._outbox.popleft())
                self._ready = True
            self._wiring.put(Connected(again=self._was_ready))
            self._was_ready = True
        self._changed.set()

    def _on_disconnect(self, client: Client, data: Any, flags: DisconnectFlags, reason: ReasonCode, properties: Properties | None) -> None:
        with self._lock:
            was_ready, self._ready = self._ready, False
        if was_ready and not self._closing:
            self._wiring.put(Disconnected(str(reason)))

    def _on_message(self, client: Client, data: Any, message: MQTTMessage) -> None:
        if message.topic == self._wiring.echo:
            self._heard_myself(bytes(message.payload))
        else:
            self._wiring.put(Raw(message.topic, bytes(message.payload), monotonic_ns()))

    def _heard_myself(self, payload: bytes) -> None:
        with self._echo_seen, suppress(ValueError):
            self._echoes_seen = max(self._echoes_seen, int(payload))
            self._echo_seen.notify_all()

    def _on_publish(self, client: Client, data: Any, mid: int, reason: ReasonCode, properties: Properties) -> None:
        """Paho holds a lock of its own here: take none."""
        self._acked.append(mid)

    def _on_socket_open(self, client: Client, data: Any, connection: Any) -> None:
        """A message goes out at once, instead of waiting for an acknowledgement of the one before."""
        with suppress(OSError, AttributeError):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
