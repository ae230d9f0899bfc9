"""The transport between the processes of a real run: messages, presence, heartbeats and the end, over MQTT.

Out: `runtime.transport.codec` makes bytes, `runtime.transport.envelope` says from whom to whom, `runtime.transport.chunks` cuts them,
`runtime.transport.link` sends them in order. In: the link puts `Raw` packets into the driver's mailbox, and the
driver's loop hands each to `open`, which goes the same way back and checks every step. What is wrong
becomes `Refused` with a reason; nothing that comes from the network raises.

    driver    transport.send(...)                        transport.open(mail) -> Inbound | Refused | None
                    |                                          ^
    link      paho's thread  -------- broker -------->  mailbox_put(Raw | Connected | Disconnected)

Delivery: at least once and in order per sender while both ends stay connected; each message is handed
on once. Over a lost connection a message may be lost or overtaken (what a broker keeps for an absent
client differs between brokers): the session layer (`runtime.transport.session`) sends again what wasn't answered.
A broker that was restarted has forgotten what it retained: call `renew` on Connected(again=True).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Literal

from flame.config.condition import Limits
from flame.core.messages import AGGREGATOR, Assign, End, Heartbeat, Message, Presence, Update, Weights
from flame.runtime.transport import chunks, codec, envelope
from flame.runtime.transport.access import ANYBODY, Access
from flame.runtime.transport.chunks import ChunkError, Reassembly
from flame.runtime.transport.codec import CodecError
from flame.runtime.transport.envelope import Envelope, EnvelopeError
from flame.runtime.transport.link import Connected, Disconnected, Link, Mail, MqttLink, Raw, TransportError, Wiring
from flame.runtime.transport.topics import Topics, check_level

MAX_WILL = 65_535
"""MQTT gives the length of a will two bytes."""
MAX_RETAINED = 1 << 20
"""Bytes of a presence, which has to be one packet, since the broker keeps one per topic."""

Kind = Literal["message", "presence", "gone", "beat", "end"]


@dataclass(slots=True)
class Inbound:
    """What came, decoded and checked.

    message: one for a node. presence: the trainers of worker `src` are here. gone: `nodes` of worker
    `src` are not any more. beat: its main loop lives. end: the run is over. nbytes: of the codec's
    messages, without envelopes. at_ns: monotonic ns at which the last packet of it arrived.
    """

    kind: Kind
    src: str
    dst: str
    incarnation: str
    messages: list[Message]
    nodes: list[str]
    measured: dict[str, float]
    nbytes: int
    at_ns: int

    @property
    def message(self) -> Message:
        """The only message, for the kinds `message`, `beat` and `end`."""
        return self.messages[0]


@dataclass(frozen=True, slots=True)
class Refused:
    """A packet, or what it completed, that isn't taken. why: for a Fault record."""

    topic: str
    why: str


class _Unfit(ValueError):
    """What was decoded has no business on its topic."""


@dataclass(slots=True)
class MqttTransport:
    """One process's end of the transport.

    name: of the process (`aggregator`, or a worker's). incarnation: one life of it. nodes: the machines
    that it hosts. mailbox_put: takes what the link reports, from another thread. listens_presence: it
    wants presence and heartbeats of all workers (the aggregator does); otherwise it wants the end, and
    its loss is announced by a last will. hears: it wants the aggregator's heartbeats too, having nobody else
    to tell it that the run is gone.
    """

    run: str
    name: str
    incarnation: str
    host: str
    port: int
    nodes: Sequence[str]
    mailbox_put: Callable[[Mail], None]
    limits: Limits
    listens_presence: bool
    link_of: Callable[[Wiring], Link] = MqttLink
    hears: bool = False
    access: Access = ANYBODY
    _topics: Topics = field(init=False)
    _link: Link = field(init=False)
    _sender: bytes = field(init=False)
    _sequence: int = 0
    _reassembly: Reassembly = field(default_factory=Reassembly)
    _retained: dict[str, bytes] = field(default_factory=dict)
    _seen: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        for what, name in (("process", self.name), ("incarnation", self.incarnation), *(("node", node) for node in self.nodes)):
            check_level(what, name)
        self._topics = Topics(self.run, self.access.user)
        self._sender = chunks.sender_of(self.run, self.name, self.incarnation)
        self._link = self.link_of(self._wiring())

    def _wiring(self) -> Wiring:
        client_id = f"flame-{self.run}-{self.name}-{self.incarnation}"
        filters = [self._topics.to(node) for node in self.nodes]
        filters += [self._topics.presence("+"), self._topics.beat("+")] if self.listens_presence else [self._topics.end]
        filters += [self._topics.beat(AGGREGATOR)] if self.hears else []
        will = None if self.listens_presence else (self._topics.presence(self.name), self._gone())
        return Wiring(client_id, self.host, self.port, filters, self._topics.echo(client_id), will, self.mailbox_put, self.access)

    def _gone(self) -> bytes:
        will = self._frame(self._envelope(self.name, "", self.nodes), [])
        if len(will) > MAX_WILL:
            raise TransportError(
                f"the last will of worker `{self.name}` names {len(self.nodes)} trainers in {len(will)} bytes, MQTT allows {MAX_WILL}\n"
                "hint: raise --workers"
            )
        return will

    def connect(self, timeout_s: float) -> None:
        """Connect and subscribe. Raises TransportError naming host, port and remedy after `timeout_s`."""
        self._link.connect(timeout_s)

    # --- out ---

    def send(self, to: str, src: str, data: bytes, measured: dict[str, float] | None = None) -> None:
        """Send an encoded message from hosted node `src` to node `to`. Never waits.

        Raises TransportError when more is waiting than the link may hold, or `data` is longer than a
        receiver may buffer.
        """
        if len(data) > chunks.OPEN_BYTES // 2:
            raise TransportError(f"a message of {len(data)} bytes from `{src}` to `{to}` is over the {chunks.OPEN_BYTES // 2} allowed")
        packed = envelope.pack(self._envelope(src, to, (), measured), [data])
        self._sequence += 1
        self._link.publish(self._topics.to(to), chunks.split(packed, self._sender, self._sequence, self.limits.chunk_bytes))

    def announce(self, presences: Sequence[Presence]) -> None:
        """Say, retained, that these trainers of this worker are here."""
        nodes = [presence.node for presence in presences]
        frame = self._frame(self._envelope(self.name, "", nodes), [codec.encode(presence) for presence in presences])
        if len(frame) > MAX_RETAINED:
            raise TransportError(f"the presence of worker `{self.name}` has {len(frame)} bytes, over {MAX_RETAINED}\nhint: raise --workers")
        self._retain(self._topics.presence(self.name), frame)

    def beat(self, heartbeat: Heartbeat) -> bool:
        """Send a heartbeat once; False when there is no connection, in which it would be late anyway."""
        return self._link.hint(self._topics.beat(self.name), self._frame(self._envelope(self.name), [codec.encode(heartbeat)]))

    def end(self, end: End) -> None:
        """Say, retained, that the run is over."""
        self._retain(self._topics.end, self._frame(self._envelope(self.name), [codec.encode(end)]))

    def invite(self, invitation: bytes) -> None:
        """Say, retained, what a worker from elsewhere needs to join: as it is, since the worker knows nothing of this run yet."""
        self._retain(self._topics.invite, invitation)

    def renew(self) -> None:
        """Say again what shall be retained: a restarted broker has forgotten it."""
        for topic, frame in self._retained.items():
            self._link.publish(topic, [frame], retain=True)

    def clear(self, timeout_s: float = 5.0) -> bool:
        """Empty the run's retained topics: what this end said, and each presence it saw. False: not confirmed in time.

        Call it when the workers are gone: a last will that comes later is retained again.
        """
        for topic in sorted(self._seen | self._retained.keys()):
            self._link.publish(topic, [b""], retain=True)
        self._retained.clear()
        self._seen.clear()
        return self._link.flush(timeout_s)

    def close(self, timeout_s: float = 5.0) -> None:
        """Disconnect, so that no will is sent and the broker keeps nothing for this process."""
        self._link.close(timeout_s)

    def _retain(self, topic: str, frame: bytes) -> None:
        self._retained[topic] = frame
        self._link.publish(topic, [frame], retain=True)

    def _envelope(self, src: str, dst: str = "", nodes: Sequence[str] = (), measured: dict[str, float] | None = None) -> Envelope:
        return Envelope(self.run, src, dst, self.incarnation, list(nodes), [], measured or {})

    def _frame(self, outside: Envelope, messages: Sequence[bytes]) -> bytes:
        """A single packet, however long."""
        self._sequence += 1
        packed = envelope.pack(outside, messages)
        return next(chunks.split(packed, self._sender, self._sequence, max(1, len(packed))))

    # --- in ---

    def open(self, mail: Raw) -> Inbound | Refused | None:
        """What `mail` is, or completes. None: more chunks are needed, it came before, or a topic was cleared.

        For the driver's loop, never for a callback. Raises nothing that depends on the packet.
        """
        place = self._topics.parse(mail.topic)
        if place is None:
            return Refused(mail.topic, f"no topic of run `{self.run}`")
        kind, name = place
        if not mail.payload and kind in ("presence", "end"):
            self._seen.discard(mail.topic)
            return None
        try:
            return self._open(kind, name, mail)
        except (ChunkError, EnvelopeError, CodecError, _Unfit) as error:
            return Refused(mail.topic, str(error))

    def _open(self, kind: str, name: str, mail: Raw) -> Inbound | None:
        if not self._wants(kind, name):
            return None
        if kind == "presence":
            self._seen.add(mail.topic)
        chunk = chunks.parse(mail.payload)
        if kind != "to" and chunk.count != 1:
            raise _Unfit(f"a {kind} in {chunk.count} chunks; it has to be one")
        data = self._reassembly.take(chunk, monotonic()) if kind == "to" else bytes(chunk.piece)
        if data is None:
            return None
        outside, parts = envelope.unpack(data)
        if outside.run != self.run:
            raise _Unfit(f"a message of another run, `{outside.run}`, from `{outside.src}`")
        messages = envelope.decoded(parts)
        _check(kind, name, outside, messages)
        what: Kind = "message" if kind == "to" else "gone" if kind == "presence" and not messages else kind  # type: ignore[assignment]
        return Inbound(
            what, outside.src, outside.dst, outside.incarnation, messages, outside.nodes, outside.measured, sum(outside.parts), mail.at_ns
        )

    def _wants(self, kind: str, name: str) -> bool:
        """Whether this end subscribed to it: a broker may send what was retained on the topics of others."""
        if kind == "to":
            return name in self.nodes
        if self.listens_presence:
            return kind in ("presence", "beat")
        return kind == "end" or (self.hears and kind == "beat" and name == AGGREGATOR)


def _check(kind: str, name: str, outside: Envelope, messages: Sequence[Message]) -> None:
    """Raise _Unfit where a message has no business on its topic, or its envelope says otherwise."""
    allowed = {"to": (Assign, Update, Weights), "presence": (Presence,), "beat": (Heartbeat,), "end": (End,)}[kind]
    if not all(isinstance(message, allowed) for message in messages):
        raise _Unfit(f"{', '.join(message.kind for message in messages)} from `{outside.src}` on a topic for {kind}")
    if kind != "presence" and len(messages) != 1:
        raise _Unfit(f"{len(messages)} messages from `{outside.src}` in one {kind}")
    if kind == "to" and outside.dst != name:
        raise _Unfit(f"a message from `{outside.src}` to `{outside.dst}`")
    if kind in ("presence", "beat") and outside.src != name:
        raise _Unfit(f"a {kind} of `{outside.src}`")
    if messages and kind == "presence" and [message.node for message in messages if isinstance(message, Presence)] != outside.nodes:
        raise _Unfit(f"a presence of {len(messages)} trainers whose envelope names {len(outside.nodes)} others")
    lives = {message.incarnation for message in messages if isinstance(message, Presence | Heartbeat)}
    if lives - {outside.incarnation}:
        raise _Unfit(f"a {kind} of `{outside.src}` in an envelope of another incarnation")


__all__ = ["Connected", "Disconnected", "Inbound", "Mail", "MqttTransport", "Raw", "Refused", "TransportError"]
