"""What a driver sees and says, the same in both worlds: bytes of messages, and where an event was illegal."""

from flame.core.machine import IllegalEvent
from flame.core.messages import Assign, Message, Update, Weights
from flame.core.time import clock_text
from flame.runtime.transport import codec
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


def located(error: IllegalEvent, node: str, seq: int, now: int, clock: str) -> IllegalEvent:
    """The same error with its place in the run, and how to get there again."""
    place = f"  step {seq} at {clock_text(now)} {clock}\nhint: flame replay RUN --node {node} --until {seq} --print"
    error.args = (f"{error.args[0]}\n{place}",)
    return error
