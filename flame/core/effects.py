"""What shall be done: the only way out. Verbs; immutable by convention."""

from dataclasses import dataclass
from typing import Any, Literal

from flame.core.events import TimerKey
from flame.core.messages import Message
from flame.core.tasks import Task


@dataclass(slots=True)
class Send:
    """Send `msg` to node `to`."""

    to: str
    msg: Message
    kind: Literal["send"] = "send"


@dataclass(slots=True)
class SetTimer:
    """Answer with TimerFired(key) when `now` has reached `at`."""

    key: TimerKey
    at: int
    kind: Literal["set_timer"] = "set_timer"


@dataclass(slots=True)
class CancelTimer:
    """Forget the timer `key`."""

    key: TimerKey
    kind: Literal["cancel_timer"] = "cancel_timer"


@dataclass(slots=True)
class Compute:
    """Run `task`; answer with ComputeDone(job) when it is finished, and not before `not_before`."""

    job: int
    task: Task
    not_before: int
    kind: Literal["compute"] = "compute"


@dataclass(slots=True)
class Emit:
    """Write `record` (of `flame.telemetry.records`) to the telemetry."""

    record: Any
    kind: Literal["emit"] = "emit"


@dataclass(slots=True)
class Stop:
    """This machine is done. verdict: COMPLETED, CONVERGED, ... (harness.md)."""

    verdict: str
    reason: str
    kind: Literal["stop"] = "stop"


Effect = Send | SetTimer | CancelTimer | Compute | Emit | Stop
