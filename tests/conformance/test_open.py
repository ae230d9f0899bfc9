"""Whatever comes is opened or refused, never raised; what can't be sent is refused to the sender. In memory."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.messages import Presence
from flame.core.profile import Profile
from flame.runtime.transport import chunks, codec, envelope
from flame.runtime.transport.envelope import Envelope, EnvelopeError
from flame.runtime.transport.link import Raw, TransportError
from flame.runtime.transport.mqtt import Inbound, MqttTransport, Refused

from .arms import Loopback, connect
from .test_transport import packets, update


def transport(*, listens: bool = True, nodes: tuple[str, ...] = ("aggregator",), name: str = "aggregator") -> MqttTransport:
    return connect(Loopback(), "run", name, nodes, listens=listens).transport


TOPICS = st.sampled_from(
    ["flame/run/to/aggregator", "flame/run/presence/w0", "flame/run/beat/w0", "flame/run/end", "flame/run/echo/x", "", "x/y"]
)
GOOD = packets("run", update(1))[0]


def wrapped(data: bytes) -> bytes:
    """A good chunk around anything."""
    return next(chunks.split(data, b"8 bytes.", 1, 1 << 20))


@given(TOPICS, st.binary(max_size=120), st.booleans())
def test_random_bytes_are_never_taken(topic: str, data: bytes, listens: bool) -> None:
    end = transport(listens=listens)
    for payload in (data, wrapped(data), wrapped(struct.pack(">I", len(data)) + data)):
        assert isinstance(end.open(Raw(topic, payload, 0)), Refused | None)


@given(st.integers(0, len(GOOD) - 1), st.binary(max_size=4))
def test_a_damaged_message_is_refused_or_says_the_same(place: int, other: bytes) -> None:
    bad = GOOD[:place] + other + GOOD[place + len(other) :]
    opened = transport().open(Raw("flame/run/to/aggregator", bad, 0))
    assert isinstance(opened, Refused) or bad == GOOD


@given(st.integers(chunks.HEADER, len(GOOD) - 1), st.binary(max_size=4))
def test_damage_that_the_checksum_agrees_with_is_refused_or_is_a_message(place: int, other: bytes) -> None:
    body = GOOD[chunks.HEADER :]
    place -= chunks.HEADER
    opened = transport().open(Raw("flame/run/to/aggregator", wrapped(body[:place] + other + body[place + len(other) :]), 0))
    assert isinstance(opened, Refused | Inbound)


def test_topics_of_others_are_refused_or_left_alone() -> None:
    end = transport(listens=False, nodes=("t0",), name="w0")
    assert end.open(Raw("flame/other/to/t0", GOOD, 0)) == Refused("flame/other/to/t0", "no topic of run `run`")
    assert end.open(Raw("flame/run/to/t1", GOOD, 0)) is None
    assert end.open(Raw("flame/run/presence/w0", GOOD, 0)) is None


def test_what_was_cleared_is_nothing() -> None:
    assert transport().open(Raw("flame/run/presence/w0", b"", 0)) is None
    assert transport(listens=False).open(Raw("flame/run/end", b"", 0)) is None


def test_a_presence_in_several_chunks_is_refused() -> None:
    half = next(chunks.split(b"abcdef", b"8 bytes.", 1, 3))
    opened = transport().open(Raw("flame/run/presence/w0", half, 0))
    assert isinstance(opened, Refused)
    assert "a presence in 2 chunks" in opened.why


@pytest.mark.parametrize("nodes", [["t1"], [], ["t0", "t1"]])
def test_a_presence_that_disagrees_with_its_envelope_is_refused(nodes: list[str]) -> None:
    presence = Presence("t0", "i1", Profile("t0", 1), "init", "data", "code")
    data = envelope.pack(Envelope("run", "w0", "", "i1", nodes), [codec.encode(presence)])
    opened = transport().open(Raw("flame/run/presence/w0", wrapped(data), 0))
    assert isinstance(opened, Refused)
    assert "whose envelope names" in opened.why


@pytest.mark.parametrize("name", ["", "a/b", "a+", "#", "\0", "x" * 201])
def test_names_that_are_no_topic_are_refused_before_anything_starts(name: str) -> None:
    with pytest.raises(ValueError, match="can't be part of an MQTT topic; use a name without"):
        transport(nodes=(name,))


def test_what_is_too_long_is_refused_to_the_sender(monkeypatch: pytest.MonkeyPatch) -> None:
    end = transport()
    monkeypatch.setattr(chunks, "OPEN_BYTES", 100)
    with pytest.raises(TransportError, match="a message of 51 bytes from `aggregator` to `t0` is over the 50 allowed"):
        end.send("t0", "aggregator", b"x" * 51)


def test_more_trainers_than_a_will_or_a_presence_can_name_are_refused() -> None:
    many = tuple(f"t{number:05}" for number in range(8_000))
    with pytest.raises(TransportError, match=r"the last will of worker `w0` names 8000 trainers(.|\n)*raise --workers"):
        transport(listens=False, nodes=many, name="w0")
    with pytest.raises(TransportError, match=r"the presence of worker `w0`(.|\n)*raise --workers"):
        transport(listens=False, nodes=("t0",), name="w0").announce(
            [Presence(node, "i1", Profile(node, 1), "i" * 64, "d" * 64, "c") for node in many]
        )


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "0 bytes announced"),
        (b"\xff\xff\xff\xff{}", "4294967295 bytes announced"),
        (b"\0\0\0\2{}", "no envelope"),
        (b"\0\0\0\2[]", "no envelope"),
        (envelope.pack(Envelope("r", "a", "b", "i"), [b"12345"])[:-1], r"announces messages of \[5\] bytes, 4 follow"),
    ],
)
def test_what_is_no_envelope_is_named(data: bytes, says: str) -> None:
    with pytest.raises(EnvelopeError, match=says):
        envelope.unpack(data)


def test_an_envelope_keeps_what_was_said_and_no_measure_that_was_not_taken() -> None:
    outside = Envelope("r", "a", "b", "i", ["n"], [], {"x_s": 0.25, "y_s": float("inf")})
    again, messages = envelope.unpack(envelope.pack(outside, [b"12", b"", b"345"]))
    assert (again.run, again.src, again.dst, again.incarnation, again.nodes) == ("r", "a", "b", "i", ["n"])
    assert (again.measured, messages) == ({"x_s": 0.25}, [b"12", b"", b"345"])


def test_an_envelope_that_is_too_long_is_refused_to_the_sender() -> None:
    with pytest.raises(EnvelopeError, match="over the 1048576 allowed"):
        envelope.pack(Envelope("r", "a", "b", "i", ["n" * 1000] * 1100), [])
