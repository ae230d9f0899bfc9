"""What happened: the only way in. Past participles; immutable by convention."""

from dataclasses import dataclass
from typing import Literal

from flame.core.messages import Message
from flame.core.profile import Profile
from flame.core.tasks import Result

TimerKey = tuple[int, int, str, int]
"""(stamp, rank, node, id): a stamped timer is named by its row in the due set."""


@dataclass(slots=True)
class Started:
    """`ready`: all nodes of the condition are present; stamp 0."""

    kind: Literal["started"] = "started"


@dataclass(slots=True)
class StopAsked:
    """Somebody wants the run to end (Ctrl-C, a wall ceiling): an intrusion."""

    why: str
    verdict: str = "INTERRUPTED"
    kind: Literal["stop_asked"] = "stop_asked"


@dataclass(slots=True)
class PeerUp:
    """A node is present."""

    node: str
    profile: Profile
    kind: Literal["peer_up"] = "peer_up"


@dataclass(slots=True)
class PeerDown:
    """A node is lost for good (its worker's respawns are spent): an intrusion."""

    node: str
    why: str
    kind: Literal["peer_down"] = "peer_down"


@dataclass(slots=True)
class Received:
    """A message arrived."""

    src: str
    msg: Message
    kind: Literal["received"] = "received"


@dataclass(slots=True)
class TimerFired:
    """A stamped timer's instant has come."""

    key: TimerKey
    kind: Literal["timer_fired"] = "timer_fired"


@dataclass(slots=True)
class ComputeDone:
    """A job is finished and its `not_before` has come. overrun: it took longer than that allowed."""

    job: int
    result: Result
    overrun: bool = False
    kind: Literal["compute_done"] = "compute_done"


@dataclass(slots=True)
class ComputeFailed:
    """A job failed twice."""

    job: int
    error: str
    kind: Literal["compute_failed"] = "compute_failed"


Event = Started | StopAsked | PeerUp | PeerDown | Received | TimerFired | ComputeDone | ComputeFailed
