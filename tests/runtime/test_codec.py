"""The codec: bit-exact round trips, exact sizes, and CodecError, nothing else, for whatever isn't a message."""

import json
import math
import struct
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flame.core.messages import Assign, End, Heartbeat, Message, Payload, Presence, Update, Weights
from flame.core.profile import Profile
from flame.core.tensor import ITEM_BYTES, Tensor
from flame.runtime.transport import codec
from flame.runtime.transport.codec import CodecError, decode, encode, size

INT64 = st.integers(-(2**63), 2**63 - 1)
COUNT = st.integers(0, 2**63 - 1)
TEXT = st.text(max_size=12)
FLOAT = st.binary(min_size=8, max_size=8).map(lambda bits: struct.unpack(">d", bits)[0])
NAME = TEXT.filter(lambda name: name != "__metadata__")


@st.composite
def tensors(draw: st.DrawFn) -> Tensor:
    dtype = draw(st.sampled_from(sorted(ITEM_BYTES)))
    shape = tuple(draw(st.lists(st.integers(0, 4), max_size=3)))
    length = math.prod(shape) * ITEM_BYTES[dtype]
    data = draw(st.binary(min_size=length, max_size=length))
    return Tensor(dtype, shape, memoryview(data) if draw(st.booleans()) else data)


PAYLOAD = st.builds(Payload, TEXT, st.dictionaries(NAME, tensors(), max_size=3), st.none() | st.integers(0, 2**63 - 1))
MESSAGE = st.one_of(
    st.builds(Assign, COUNT, COUNT, COUNT, COUNT, COUNT, INT64, INT64, INT64, PAYLOAD),
    st.builds(Update, COUNT, COUNT, COUNT, COUNT, INT64, PAYLOAD, COUNT, FLOAT, FLOAT, FLOAT),
    st.builds(Weights, COUNT, PAYLOAD),
    st.builds(Presence, TEXT, TEXT, st.builds(Profile, TEXT, COUNT), TEXT, TEXT, TEXT),
    st.builds(Heartbeat, TEXT, TEXT, st.lists(COUNT, max_size=3), COUNT),
    st.builds(End, TEXT),
)


def bits(msg: Message) -> list[Any]:
    """Fields of `msg` with floats as bits, so that NaN equals itself; tensors with their order."""
    values = [getattr(msg, field.name) for field in fields(msg)]
    return [
        struct.pack(">d", value) if isinstance(value, float) else list(value.tensors.items()) if isinstance(value, Payload) else value
        for value in values
    ]


def read(data: bytes) -> Message | None:
    """The message in `data`, None where it is refused; any other exception comes through."""
    try:
        return decode(data)
    except CodecError:
        return None


@given(MESSAGE)
def test_what_is_encoded_comes_back_bit_for_bit_and_as_long_as_size_said(msg: Message) -> None:
    data = encode(msg)
    assert size(msg) == len(data)
    again = decode(data)
    assert type(again) is type(msg)
    assert bits(again) == bits(msg)
    assert encode(again) == data


@given(st.binary(max_size=200))
def test_random_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(CodecError):
        decode(data)


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_a_good_prefix_before_random_bytes_is_refused(head: bytes, body: bytes) -> None:
    with pytest.raises(CodecError):
        decode(codec._PREFIX.pack(codec.MAGIC, codec.VERSION, len(head)) + head + body)


@settings(max_examples=400)
@given(MESSAGE, st.data())
def test_a_damaged_message_is_refused_or_is_another_message(msg: Message, data: st.DataObject) -> None:
    """Flipped, cut and doubled bytes never raise anything but CodecError; what is still read is in canonical form."""
    good = encode(msg)
    start = data.draw(st.integers(0, len(good) - 1))
    length = data.draw(st.integers(0, 8))
    bad = good[:start] + data.draw(st.binary(max_size=8)) + good[start + length :]
    again = read(bad)
    assert again is None or encode(again) == bad


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
WEIGHTS = Weights(3, Payload("full", {"theta": Tensor("float32", (2,), b"12345678")}))
UPDATE = Update(9, 4, 2, 1, 77, Payload("dense", {"delta": Tensor("float64", (1,), b"12345678")}), 8, 0.5, 1.5, -0.25)
ASSIGN = Assign(9, 4, 2, 1, 0, 70, 77, 71, Payload("none"))


def framed(head: bytes, body: bytes = b"") -> bytes:
    return codec._PREFIX.pack(codec.MAGIC, codec.VERSION, len(head)) + head + body


@settings(max_examples=300)
@given(st.sampled_from([WEIGHTS, UPDATE, ASSIGN]), st.data())
def test_a_field_with_any_other_json_value_is_refused_or_canonical(msg: Message, data: st.DataObject) -> None:
    good = encode(msg)
    head, body = codec._split(good)
    raw = codec.orjson.loads(head)
    raw[data.draw(st.sampled_from(sorted(raw)))] = data.draw(JSON)
    bad = framed(_json(raw), body)
    again = read(bad)
    assert again is None or encode(again) == bad


def _json(raw: Any) -> bytes:
    return json.dumps(raw, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")


def _with(msg: Message, **changes: Any) -> bytes:
    head, body = codec._split(encode(msg))
    return framed(_json(codec.orjson.loads(head) | changes), body)


CASES = {
    "empty": (b"", "too few"),
    "pickle": (b"\x80\x05\x95" + b"." * 40, "starts with"),
    "version": (codec.MAGIC + b"\x63" + encode(End("x"))[5:], "install one version"),
    "long head": (codec._PREFIX.pack(codec.MAGIC, codec.VERSION, 2**32 - 1) + b"{}", "head of 4294967295 bytes"),
    "no json": (framed(b"{"), "isn't JSON"),
    "deep json": (framed(b"[" * 100_000), "isn't JSON"),
    "no object": (framed(b"[]"), "isn't one of"),
    "no kind": (framed(b"{}"), "isn't one of"),
    "other kind": (framed(b'{"kind":"exec"}'), "isn't one of"),
    "list as kind": (framed(b'{"kind":[]}'), "isn't one of"),
    "missing": (framed(b'{"kind":"end"}'), "reason"),
    "unknown key": (_with(End("x"), more=1), "more"),
    "coerced": (_with(WEIGHTS, version="3"), "isn't what"),
    "bool for int": (_with(WEIGHTS, version=True), "isn't what"),
    "huge int": (_with(WEIGHTS, version=10**400), "JSON"),
    "int over 64 bits": (_with(WEIGHTS, version=2.0**64), "maximum size"),
    "spaces": (framed(b'{"reason": "x", "kind": "end"}'), "isn't what"),
    "plain float": (_with(UPDATE, loss=0.5), "16 hex digits"),
    "bad hex": (_with(UPDATE, loss="zz" * 8), "`loss`"),
    "upper case hex": (_with(UPDATE, loss="3FE0000000000000"), "isn't what"),
    "short sent_now": (_with(ASSIGN, sent_now="12"), "20 digits"),
    "odd sent_now": (_with(ASSIGN, sent_now="1_" * 10), "sent_now"),
    "payload as list": (_with(WEIGHTS, payload=[]), "a payload is"),
    "unnamed tensor": (_with(WEIGHTS, payload={"kind": "full", "tensors": []}), "the body has"),
    "number as name": (_with(WEIGHTS, payload={"kind": "full", "tensors": [1]}), "the body has"),
    "name twice": (_with(WEIGHTS, payload={"kind": "full", "tensors": ["theta", "theta"]}), "the body has"),
    "text as base": (_with(ASSIGN, payload={"kind": "delta", "tensors": [], "base": "3"}), "the base of"),
    "bool as base": (_with(ASSIGN, payload={"kind": "delta", "tensors": [], "base": True}), "the base of"),
    "base of null": (_with(ASSIGN, payload={"kind": "none", "tensors": [], "base": None}), "the base of"),
    "body at an end": (encode(End("x")) + b"12345678", "bytes"),
    "cut body": (encode(WEIGHTS)[:-1], "isn't safetensors"),
    "long body": (encode(WEIGHTS) + b"1", "isn't safetensors"),
    "huge body head": (encode(WEIGHTS)[:-80] + (2**60).to_bytes(8, "little") + b"{" * 72, "isn't safetensors"),
}


@pytest.mark.parametrize("case", CASES)
def test_each_kind_of_garbage_is_named(case: str) -> None:
    data, says = CASES[case]
    with pytest.raises(CodecError, match=says):
        decode(data)


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [
        ([2**62, 4], "F32"),
        ([2**64], "F32"),
        ([-1], "F32"),
        ([2], "F16"),
        ([1.5], "F32"),
        (None, "F32"),
        ([1] * 5000, "F64"),
        ([0, 2**62, 2**62], "F32"),
    ],
)
def test_a_lying_tensor_header_allocates_nothing_and_is_refused(shape: Any, dtype: str) -> None:
    header = _json({"theta": {"dtype": dtype, "shape": shape, "data_offsets": [0, 8]}})
    head, _ = codec._split(encode(WEIGHTS))
    with pytest.raises(CodecError):
        decode(framed(head, len(header).to_bytes(8, "little") + header + b"12345678"))


@pytest.mark.parametrize("sent_now", [0, 1, 10**18, 2**63 - 1, -5])
def test_sent_now_never_changes_the_size(sent_now: int) -> None:
    assert size(replace(ASSIGN, sent_now=sent_now)) == size(ASSIGN) == len(encode(ASSIGN))


@pytest.mark.parametrize(
    ("msg", "says"),
    [
        (replace(ASSIGN, id=2**70), "64"),
        (replace(ASSIGN, sent_now=10**30), "20 digits"),
        (Weights(1, Payload("full", {"theta": Tensor("uint8", (1,) * 33, b"1")})), "has the shape"),
        (End("\ud800"), "can't be written"),
        (End("x" * (codec.MAX_HEAD + 1)), "over the"),
        (Weights(1, Payload("full", {"__metadata__": Tensor("uint8", (1,), b"1")})), "__metadata__"),
        ("no message", "isn't a message"),
    ],
)
def test_what_the_format_cannot_hold_is_refused_by_the_sender(msg: Any, says: str) -> None:
    with pytest.raises(CodecError, match=says):
        encode(msg)


def test_size_remembers_layouts_but_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codec, "_LAYOUTS_KEPT", 2)
    monkeypatch.setattr(codec, "_sizes", {})
    for length in (1, 2, 3, 1):
        msg = Weights(1, Payload("full", {"theta": Tensor("uint8", (length,), b"1" * length)}))
        assert size(msg) == len(encode(msg))
        assert len(codec._sizes) <= 2


def test_decoded_tensors_are_immutable_and_share_no_memory_with_the_message() -> None:
    again = decode(encode(WEIGHTS))
    assert isinstance(again, Weights)
    assert type(again.payload.tensors["theta"].data) is bytes


@pytest.mark.parametrize("size", [0, 1, 13, 450_340])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_what_a_leg_leaves_out_is_small_whatever_p_is(size: int, dtype: str) -> None:
    """A modelled leg takes `Payload.nbytes`; head and framing are the rest of what is sent."""
    block = Tensor(dtype, (size,), bytes(size * ITEM_BYTES[dtype]))
    payloads = [
        Payload("none"),
        Payload("full", {"theta": block}),
        Payload("full", {"theta": block, "u": block}),
        Payload("dense", {"delta": block}),
    ]
    for payload in payloads:
        for msg in (
            Assign(10**6, 999, 99, 99, 9, 10**15, 10**15, 10**15, payload),
            Update(10**6, 999, 99, 99, 10**15, payload, 8, 1.0, 1.0, 1.0),
        ):
            assert payload.nbytes == sum(tensor.nbytes for tensor in payload.tensors.values())
            assert 0 < codec.size(msg) - payload.nbytes < 1024
