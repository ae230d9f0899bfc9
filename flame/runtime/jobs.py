"""Jobs of a real process: what is out at its computing thread, and what a process that is gone was waiting for."""

from dataclasses import dataclass
from time import monotonic_ns

from flame.core.events import TimerKey
from flame.core.tasks import Task
from flame.core.time import in_seconds
from flame.runtime.compute.executors import Computed


@dataclass(slots=True)
class Job:
    """A compute that is out, and the update that comes of it. decode: of its assign, ns. Instants are monotonic ns."""

    node: str
    id: int
    task: Task
    not_before: int
    decode: int
    submitted: int
    measured: Computed | None = None
    answered: int = 0
    update: bytes = b""

    def phases(self) -> dict[str, float]:
        """Seconds of each phase until now. From the assign's receipt to the update they add up; decoding it was before."""
        done = self.measured
        assert done is not None
        instants = (self.submitted, done.started_at, done.ended_at, self.answered, monotonic_ns())
        spans = zip(("queue", "compute", "hold", "encode"), instants, instants[1:], strict=False)
        phases = {name: in_seconds(after - before) for name, before, after in spans}
        phases["compute"] -= sum(done.finished.moved.values())
        return {"decode": in_seconds(self.decode), **phases, **done.finished.moved}


@dataclass(slots=True)
class Pending:
    """What a process waits for at `now`: timers (node, key, at) and jobs (node, id, task, not_before). Instants are ns since ready."""

    now: int
    timers: list[tuple[str, TimerKey, int]]
    jobs: list[tuple[str, int, Task, int]]
