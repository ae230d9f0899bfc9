"""Records that a driver makes, the same in both worlds: bytes of messages, from the messages themselves."""

from flame.core.messages import Assign, Message, Update, Weights
from flame.runtime import codec
from flame.telemetry.records import Comm


def comm_record(src: str, to: str, msg: Message) -> Comm | None:
    """Bytes of an assign, an update, or weights sent again; None for messages that don't count."""
    if isinstance(msg, Assign):
        return Comm("down", msg.payload.kind, msg.id, to, codec.size(msg), len(msg.payload.tensors))
    if isinstance(msg, Update):
        return Comm("up", msg.payload.kind, msg.id, src, codec.size(msg), len(msg.payload.tensors))
    if isinstance(msg, Weights):
        return Comm("down", "resend", 0, to, codec.size(msg), len(msg.payload.tensors))
    return None
