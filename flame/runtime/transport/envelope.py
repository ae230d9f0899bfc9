"""What stands on the outside of messages: who sends to whom in which run, and what was measured.

    length of the envelope, 4 bytes | envelope, JSON | messages of `runtime.transport.codec`, one after the other

The envelope is no part of a message, so that a message has as many bytes simulated, where there is no
envelope, as it has for real. `measured` rides here: numbers that differ from run to run, which a driver
writes to its telemetry and no role ever sees.
"""

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import orjson
from pydantic import ConfigDict, TypeAdapter, ValidationError

from flame.core.messages import Message
from flame.runtime.transport import codec

MAX_ENVELOPE = 1 << 20
_LENGTH = struct.Struct(">I")


class EnvelopeError(ValueError):
    """Data that is no envelope with messages. str() says why."""


@dataclass(slots=True)
class Envelope:
    """The outside of some messages.

    incarnation: the sender's. nodes: the trainers that the sender speaks for, where it is a worker.
    parts: bytes of each message inside. measured: name -> a measured value, seconds unless the name
    says otherwise.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(strict=True, extra="forbid")

    run: str
    src: str
    dst: str
    incarnation: str
    nodes: list[str] = field(default_factory=list)
    parts: list[int] = field(default_factory=list)
    measured: dict[str, float] = field(default_factory=dict)


_ADAPTER = TypeAdapter(Envelope)


def pack(envelope: Envelope, messages: Sequence[bytes]) -> bytes:
    """`envelope` around encoded `messages`; values that aren't finite weren't measured and are left out."""
    envelope.parts = [len(message) for message in messages]
    envelope.measured = {name: value for name, value in envelope.measured.items() if math.isfinite(value)}
    head = orjson.dumps(envelope)
    if len(head) > MAX_ENVELOPE:
        raise EnvelopeError(f"the envelope from {envelope.src} to {envelope.dst} has {len(head)} bytes, over the {MAX_ENVELOPE} allowed")
    return b"".join((_LENGTH.pack(len(head)), head, *messages))


def unpack(data: bytes) -> tuple[Envelope, list[bytes]]:
    """The envelope and the encoded messages in it. Raises EnvelopeError for anything else."""
    length = _LENGTH.unpack_from(data)[0] if len(data) >= _LENGTH.size else 0
    start = _LENGTH.size + length
    if not 0 < length <= min(MAX_ENVELOPE, len(data) - _LENGTH.size):
        raise EnvelopeError(f"an envelope of {length} bytes announced in {len(data)}")
    try:
        envelope = _ADAPTER.validate_json(data[_LENGTH.size : start])
    except ValidationError as error:
        raise EnvelopeError(f"no envelope: {str(error).splitlines()[0]}") from error
    if any(part < 0 for part in envelope.parts) or sum(envelope.parts) != len(data) - start:
        raise EnvelopeError(f"the envelope announces messages of {envelope.parts[:5]} bytes, {len(data) - start} follow")
    messages = []
    for part in envelope.parts:
        messages.append(data[start : start + part])
        start += part
    return envelope, messages


def decoded(messages: Sequence[bytes]) -> list[Message]:
    """`messages` as Message. Raises CodecError."""
    return [codec.decode(message) for message in messages]
