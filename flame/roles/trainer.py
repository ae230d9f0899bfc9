"""The trainer: takes one assign at a time, computes, sends one update.

    idle --Assign--> busy --ComputeDone--> idle
         --Weights-> idle                       (a new incarnation gets its weights back)

The update leaves at its due, whatever the computing took: `not_before` on the Compute effect holds the
result back, so an emulated device, and the legs of an emulated network, need no sleep here. Only receipt and the two numbers in the assign
are used; no clock of another host is compared. That an assign which was sent twice runs once is the
session layer's work, so a second assign while busy is a fault of somebody, and is said so.
"""

from collections.abc import Sequence

from flame.config.condition import Condition
from flame.core.effects import Compute, Effect, Emit, Send, Stop
from flame.core.events import ComputeDone, ComputeFailed, Event, Received, TimerKey
from flame.core.machine import IllegalEvent
from flame.core.messages import AGGREGATOR, Assign, End, Update, Weights
from flame.core.profile import Profile
from flame.core.tasks import Gradient, GradientResult
from flame.learn.params import Layout, norm, vector
from flame.policies.payload import UP
from flame.policies.perturb.combined import seed_of
from flame.roles.held import Held, advanced
from flame.telemetry.records import Level, TaskRecv, TaskSend, TrainerRound


class Trainer:
    """One client. level: records above it are not even made. layout: of theta, None where it is one tensor."""

    __slots__ = ("_assign", "_condition", "_detailed", "_held", "_layout", "_passes", "_stopped", "profile", "released")

    def __init__(self, condition: Condition, profile: Profile, level: Level = "full", layout: Layout | None = None) -> None:
        self.profile = profile
        self.released: Sequence[TimerKey] = ()
        self._detailed = level == "full"
        self._condition, self._layout = condition, layout
        self._assign: Assign | None = None
        self._held: Held | None = None
        self._passes = 0
        self._stopped = False

    def describe(self) -> str:
        """Who, and in which state."""
        state = "idle" if self._assign is None else f"busy, job {self._assign.id}"
        version = None if self._held is None else self._held.version
        return f"trainer `{self.profile.node}` ({'stopped' if self._stopped else state}, version {version})"

    def step(self, now: int, event: Event) -> list[Effect]:
        """Take one event."""
        if self._stopped:
            return []
        match event:
            case Received(msg=Assign() as assign) if self._assign is None:
                return self._start(now, assign)
            case ComputeDone() if self._assign is not None and event.job == self._assign.id:
                return self._finish(self._assign, event)
            case Received(msg=Weights() as weights) if self._assign is None:
                self._held = Held.of(weights.version, weights.payload)
                return []
            case ComputeFailed():
                return self._end("CRASH", f"`{self.profile.node}`: job {event.job} failed twice: {event.error}")
            case Received(msg=End() as end):
                return self._end("COMPLETED", end.reason)
        raise IllegalEvent(self, event)

    def _up_to_date(self, assign: Assign) -> Held:
        """The weights of the assign's version. Who holds them, after a resend, needs nothing that leads there."""
        held, payload = self._held, assign.payload
        if held is not None and held.version == assign.version:
            return held
        if payload.kind == "full":
            return Held.of(assign.version, payload)
        wanted = assign.version if payload.base is None else payload.base
        if held is None or held.version != wanted:
            raise IllegalEvent(self, f"assign {assign.id} without weights of version {wanted}")
        try:
            return advanced(held, assign.version, assign.data_id, payload, self._condition, self._layout)
        except ValueError as error:
            raise IllegalEvent(self, f"assign {assign.id}, which can't be followed: {error}") from None

    def _start(self, now: int, assign: Assign) -> list[Effect]:
        held = self._held = self._up_to_date(assign)
        self._assign = assign
        node, config = self.profile.node, self._condition
        seed = seed_of(config.perturb, (config.seed, node, assign.version, assign.data_id, assign.draw, assign.id))
        task = Gradient(node, assign.version, assign.data_id, seed, held.theta, held.u)
        origin = assign.sent_now if config.pacing == "absolute" else assign.stamp
        compute = Compute(assign.id, task, now + assign.due - origin)
        if not self._detailed:
            return [compute]
        received = TaskRecv(assign.id, node, assign.version, assign.data_id, assign.iteration, assign.stamp, assign.due)
        return [Emit(received), compute]

    def _finish(self, assign: Assign, done: ComputeDone) -> list[Effect]:
        result, node, payloads = done.result, self.profile.node, self._condition.payload
        if not isinstance(result, GradientResult):
            raise IllegalEvent(self, done)
        self._assign = None
        self._passes += result.passes
        update = Update(
            assign.id, assign.version, assign.data_id, assign.iteration, assign.due,
            UP[payloads.up].packed(result, payloads.wire_dtype), result.samples, result.loss, result.utility, result.derivative,
        )  # fmt: skip
        if not self._detailed:
            return [Send(AGGREGATOR, update)]
        finished = TrainerRound(
            assign.id, node, assign.version, assign.data_id, assign.iteration, self.profile.duration(), done.overrun,
            result.passes, result.probes, self._passes, result.loss, result.utility, norm(vector(result.delta)), result.samples,
        )  # fmt: skip
        return [Emit(finished), Emit(TaskSend(assign.id, node, assign.due)), Send(AGGREGATOR, update)]

    def _end(self, verdict: str, reason: str) -> list[Effect]:
        self._stopped = True
        return [Stop(verdict, reason)]
