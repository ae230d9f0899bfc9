"""Messages as bytes, and back: data only, nothing in them can be executed.

    "FLME" | version, 1 byte | head length, 4 bytes | head, JSON | body, safetensors

The head is the message with its tensors left out: in their place stand their names, in order. The body
holds them; a message without tensors has none. Two kinds of field have a form of their own in the
head. Floats are the 16 hex digits of their IEEE bits, so each of them, NaN too, comes back bit for
bit. `sent_now` differs between the worlds and has 20 digits always, so that a message is as long
simulated as it is for real.

One message has one encoding. `decode` parses, validates against the `Message` union, encodes the head
again and refuses what differs: unknown keys, coerced types and second spellings end there. Whatever
the bytes are, the answer is a Message or a CodecError, and no more is allocated than was received.

`size` counts what `encode` would give without touching tensor data. The simulator calls it for each
message; what safetensors adds depends on names, dtypes and shapes alone, and is remembered per layout.
"""

import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Annotated, Any, get_args

import numpy as np
import orjson
import safetensors
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from flame.core.messages import Message, Payload
from flame.core.profile import Profile
from flame.core.tensor import Tensor

VERSION = 1
MAGIC = b"FLME"
MAX_HEAD = 1 << 20
"""Bytes of head. The longest known, a heartbeat with a thousand jobs, has some 20 000."""

_PREFIX = struct.Struct(">4sBI")
_DOUBLE = struct.Struct(">d")
_LAYOUTS_KEPT = 4096
_RESERVED = "__metadata__"
_MAX_AXES = 32

_DTYPES = {"F64": "float64", "F32": "float32", "BF16": "bfloat16", "I64": "int64", "I32": "int32", "U8": "uint8", "BOOL": "bool"}
_ADAPTER: TypeAdapter[Message] = TypeAdapter(
    Annotated[Message, Field(discriminator="kind")], config=ConfigDict(arbitrary_types_allowed=True, extra="forbid")
)

Layout = tuple[tuple[str, str, tuple[int, ...]], ...]


class CodecError(ValueError):
    """Bytes that are no message, or a message that can't be bytes. str() says what is wrong."""


def encode(msg: Message) -> bytes:
    """`msg` as bytes. Raises CodecError for what the format can't hold (an integer over 64 bits, text that is no Unicode)."""
    head = _head(msg)
    tensors = _tensors(msg)
    return b"".join((_PREFIX.pack(MAGIC, VERSION, len(head)), head, _body(tensors) if tensors else b""))


def size(msg: Message) -> int:
    """len(encode(msg)), in bytes, without copying tensors."""
    length = _PREFIX.size + len(_head(msg))
    tensors = _tensors(msg)
    return length + _body_size(tensors) if tensors else length


def decode(data: bytes) -> Message:
    """The message in `data`. Raises CodecError for anything that `encode` doesn't make, and nothing else."""
    head, body = _split(data)
    raw = _parse(head)
    msg = _validated(_from_wire(raw, body))
    if _head(msg) != head:
        raise CodecError(f"the head of this {msg.kind} isn't what `encode` makes of it: {_shown(head)}")
    if size(msg) != len(data):
        raise CodecError(f"this {msg.kind} has {len(data)} bytes, its encoding has {size(msg)}")
    return msg


# --- the head ---


def _hex_of(value: float) -> str:
    return _DOUBLE.pack(value).hex()


def _float_of(text: Any) -> float:
    if not isinstance(text, str) or len(text) != 16:
        raise CodecError(f"a float is 16 hex digits, got {_shown(text)}")
    return float(_DOUBLE.unpack(bytes.fromhex(text))[0])


def _fixed_of(value: int) -> str:
    text = f"{value:020d}"
    if len(text) != 20:
        raise ValueError(f"`sent_now` is {value}, over 20 digits")
    return text


def _int_of(text: Any) -> int:
    if not isinstance(text, str) or len(text) != 20:
        raise CodecError(f"`sent_now` is 20 digits, got {_shown(text)}")
    return int(text)


def _names_of(payload: Payload) -> dict[str, Any]:
    named = {"kind": payload.kind, "tensors": list(payload.tensors)}
    return named if payload.base is None else named | {"base": payload.base}


def _profile_of(profile: Profile) -> dict[str, Any]:
    return {"node": profile.node, "delay_ns": profile.delay_ns}


def _form(name: str, kind: Any) -> Callable[[Any], Any] | None:
    """How a field is written in the head; None: as it is."""
    if name == "sent_now":
        return _fixed_of
    forms: dict[Any, Callable[[Any], Any]] = {float: _hex_of, Payload: _names_of, Profile: _profile_of}
    return forms.get(kind)


_FORMS: dict[type, list[tuple[str, Callable[[Any], Any] | None]]] = {
    kind: [(field.name, _form(field.name, field.type)) for field in fields(kind)] for kind in get_args(Message)
}
_FIELDS = {kind.__dataclass_fields__["kind"].default: {field.name: field.type for field in fields(kind)} for kind in get_args(Message)}
_WITH_PAYLOAD = frozenset(kind for kind in get_args(Message) if Payload in {field.type for field in fields(kind)})


def _head(msg: Message) -> bytes:
    forms = _FORMS.get(type(msg))
    if forms is None:
        raise CodecError(f"`{type(msg).__name__}` isn't a message; known: {', '.join(sorted(_FIELDS))}")
    try:
        head = orjson.dumps({name: getattr(msg, name) if form is None else form(getattr(msg, name)) for name, form in forms})
    except (TypeError, ValueError, struct.error, AttributeError) as error:
        raise CodecError(f"this {msg.kind} can't be written: {error}") from error
    if len(head) > MAX_HEAD:
        raise CodecError(f"the head of this {msg.kind} has {len(head)} bytes, over the {MAX_HEAD} allowed")
    return head


def _split(data: bytes) -> tuple[bytes, bytes]:
    """Head and body. Raises CodecError where the prefix is wrong."""
    if len(data) < _PREFIX.size:
        raise CodecError(f"{len(data)} bytes are too few for a message")
    magic, version, length = _PREFIX.unpack_from(data)
    if magic != MAGIC:
        raise CodecError(f"a message starts with {MAGIC!r}, this with {magic!r}")
    if version != VERSION:
        raise CodecError(f"message format {version}, this program speaks {VERSION}; install one version of flame-fl everywhere")
    if length > MAX_HEAD or length > len(data) - _PREFIX.size:
        raise CodecError(f"a head of {length} bytes announced, {len(data) - _PREFIX.size} bytes follow, {MAX_HEAD} are allowed")
    end = _PREFIX.size + length
    return bytes(data[_PREFIX.size : end]), bytes(data[end:])


def _parse(head: bytes) -> dict[str, Any]:
    try:
        raw = orjson.loads(head)
    except ValueError as error:
        raise CodecError(f"the head isn't JSON: {error}") from error
    if not isinstance(raw, dict) or not isinstance(raw.get("kind"), str) or raw["kind"] not in _FIELDS:
        raise CodecError(f"the head isn't one of {', '.join(sorted(_FIELDS))}: {_shown(head)}")
    return raw


def _from_wire(raw: dict[str, Any], body: bytes) -> dict[str, Any]:
    """`raw` with floats, `sent_now` and tensors put back."""
    kinds = _FIELDS[raw["kind"]]
    try:
        for name in raw.keys() & kinds.keys():
            if kinds[name] is float:
                raw[name] = _float_of(raw[name])
            elif kinds[name] is Payload:
                raw[name] = _payload(raw[name], body)
            elif name == "sent_now":
                raw[name] = _int_of(raw[name])
    except CodecError as error:
        raise CodecError(f"`{name}` of a {raw['kind']}: {error}") from error
    except ValueError as error:
        raise CodecError(f"`{name}` of a {raw['kind']} is {_shown(raw[name])}: {error}") from error
    return raw


def _validated(raw: dict[str, Any]) -> Message:
    try:
        return _ADAPTER.validate_python(raw)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_context=False)[0]
        place = ".".join(str(part) for part in fault["loc"])
        raise CodecError(f"`{place}` is {_shown(fault['input'])}: {fault['msg']}") from error


def _shown(value: Any) -> str:
    text = repr(value[:80] if isinstance(value, bytes | str) else value)
    return text if len(text) <= 80 else text[:77] + "..."


# --- the body ---


def _tensors(msg: Message) -> dict[str, Tensor]:
    return msg.payload.tensors if type(msg) in _WITH_PAYLOAD else {}  # type: ignore[union-attr]


def _body(tensors: dict[str, Tensor]) -> bytes:
    if _RESERVED in tensors:
        raise CodecError(f"a tensor can't be called `{_RESERVED}`")
    for name, tensor in tensors.items():
        _check_shape(name, tensor.shape)
    views = {name: np.frombuffer(tensor.data, np.uint8) for name, tensor in tensors.items()}
    try:
        specs = {
            name: safetensors.TensorSpec(
                dtype=tensors[name].dtype, shape=tensors[name].shape, data_ptr=view.ctypes.data, data_len=view.nbytes
            )
            for name, view in views.items()
        }
        return safetensors.serialize(specs)
    except (safetensors.SafetensorError, TypeError, ValueError) as error:
        raise CodecError(f"tensors {', '.join(tensors)} can't be written: {error}") from error


def _body_size(tensors: dict[str, Tensor]) -> int:
    layout = tuple([(name, tensor.dtype, tensor.shape) for name, tensor in tensors.items()])
    known = _sizes.get(layout)
    if known is None:
        if len(_sizes) >= _LAYOUTS_KEPT:
            _sizes.clear()
        known = _sizes[layout] = len(_body(tensors))
    return known


_sizes: dict[Layout, int] = {}
"""Bytes of the body per layout; what they are doesn't depend on who asked first."""


def _payload(raw: Any, body: bytes) -> Payload:
    """The payload of which `raw` names the tensors, in that order."""
    if not isinstance(raw, dict) or raw.keys() - {"base"} != {"kind", "tensors"} or not isinstance(raw["tensors"], list):
        raise CodecError(f"a payload is a kind and the names of its tensors, got {_shown(raw)}")
    if type(raw.get("base", 0)) is not int:
        raise CodecError(f"the base of a payload is a version, got {_shown(raw['base'])}")
    names, stored = raw["tensors"], _stored(body)
    if not all(isinstance(name, str) for name in names) or sorted(stored) != sorted(names):
        raise CodecError(f"the head names the tensors {_shown(names)}, the body has {_shown(sorted(stored))}")
    return Payload(kind=raw["kind"], tensors={name: stored[name] for name in names}, base=raw.get("base"))


def _stored(body: bytes) -> dict[str, Tensor]:
    """The tensors of a safetensors body, each in memory of its own, aligned for any dtype."""
    if not body:
        return {}
    try:
        entries: list[tuple[str, dict[str, Any]]] = safetensors.deserialize(body)  # type: ignore[no-untyped-call]
    except safetensors.SafetensorError as error:
        raise CodecError(f"the body isn't safetensors: {error}") from error
    return {name: _tensor(name, entry) for name, entry in entries}


def _tensor(name: str, entry: dict[str, Any]) -> Tensor:
    dtype = _DTYPES.get(entry["dtype"])
    if dtype is None:
        raise CodecError(f"tensor `{name}` is {entry['dtype']}; known: {', '.join(sorted(_DTYPES))}")
    _check_shape(name, entry["shape"])
    return Tensor(dtype, tuple(entry["shape"]), bytes(entry["data"]))


def _check_shape(name: str, shape: Sequence[int]) -> None:
    """Refuse what no array library could hold, such as [0, 2**62, 2**62], which has no bytes."""
    if len(shape) > _MAX_AXES or math.prod(max(axis, 1) for axis in shape) >= 2**63:
        raise CodecError(f"tensor `{name}` has the shape {_shown(list(shape))}")
