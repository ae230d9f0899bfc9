"""A stage for one aggregator: small conditions, events made by hand, and what came of them.

Nobody computes here. A test says which update arrives when, and with which numbers in it, so that each
commit can be checked by hand: theta starts at (0, 0), the server steps with lr 1, delays are 1, 2, 3, ... s.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from flame.config.condition import Condition
from flame.config.devices import profiles
from flame.core.effects import Compute, Effect, Emit, Send, Stop
from flame.core.events import ComputeDone, Event, PeerUp, Received, Started, TimerFired
from flame.core.messages import Assign, Payload, Update
from flame.core.tasks import EvalResult
from flame.core.tensor import Tensor
from flame.core.time import SECOND
from flame.learn.params import tensor, vector
from flame.roles.aggregator import Aggregator
from flame.telemetry.records import Level

T = TypeVar("T")

PLAIN: dict[str, Any] = {
    "task": "surrogate", "surrogate": {"parameters": 2, "bins": 3}, "trainers": 3, "goal": 2, "concurrency": 3,
    "delays": {"values": [1, 2, 3, 4, 5, 6]}, "loop": "async", "commit": ["agg_goal"], "eval": {"every": 0},
    "server_opt": {"type": "sgd", "lr": 1.0}, "stop": {"cycles": 100},
}  # fmt: skip


def condition(**changes: Any) -> Condition:
    """Three trainers, K = 2, C = 3, async, a commit at each close; `changes` are keys of the condition."""
    own = {"surrogate": {}} if "task" in changes else {}
    return Condition.model_validate(PLAIN | own | changes)


def numbers(*values: float) -> Tensor:
    """A float64 tensor."""
    return tensor(np.array(values, np.float64))


@dataclass
class Heard:
    """The effects of one step."""

    effects: list[Effect]

    @property
    def assigns(self) -> dict[str, Assign]:
        """What was sent, by trainer."""
        return {effect.to: effect.msg for effect in self.effects if isinstance(effect, Send) and isinstance(effect.msg, Assign)}

    @property
    def evaluations(self) -> list[Compute]:
        """What shall be computed."""
        return [effect for effect in self.effects if isinstance(effect, Compute)]

    @property
    def stop(self) -> Stop | None:
        """The end, if it came."""
        return next((effect for effect in self.effects if isinstance(effect, Stop)), None)

    def records(self, kind: type[T]) -> list[T]:
        """What was emitted of one kind."""
        return [effect.record for effect in self.effects if isinstance(effect, Emit) and isinstance(effect.record, kind)]

    def of(self, kind: type[T]) -> list[T]:
        """Effects of one kind."""
        return [effect for effect in self.effects if isinstance(effect, kind)]


@dataclass
class Stage:
    """An aggregator and the assigns that it has sent. now: of the last step, ns."""

    condition: Condition
    init: Sequence[float] = (0.0, 0.0)
    level: Level = "full"
    now: int = 0
    sent: dict[int, tuple[str, Assign]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.machine = Aggregator(self.condition, numbers(*self.init), self.condition.surrogate.bins, self.level)
        self._profiles = profiles(self.condition)

    @property
    def theta(self) -> tuple[float, ...]:
        """The model."""
        return tuple(vector(self.machine.theta).tolist())

    def step(self, event: Event, at: float | None = None) -> Heard:
        """Feed one event at `at` seconds, or at the instant of the last one."""
        self.now = self.now if at is None else round(at * SECOND)
        heard = Heard(self.machine.step(self.now, event))
        self.sent |= {assign.id: (node, assign) for node, assign in heard.assigns.items()}
        return heard

    def up(self, nodes: Iterable[str] | None = None) -> None:
        """Peers come."""
        for node in self.condition.nodes if nodes is None else nodes:
            self.step(PeerUp(node, self._profiles[node]))

    def start(self) -> Heard:
        """Everybody is there: `ready`."""
        self.up()
        return self.step(Started())

    def update(self, id: int, *delta: float, loss: float = 1.0) -> Received:
        """The answer to assign `id`, by its trainer."""
        node, assign = self.sent[id]
        payload = Payload("dense", {"delta": numbers(*(delta or (1.0, 1.0)))})
        return Received(
            node, Update(id, assign.version, assign.data_id, assign.iteration, assign.due, payload, 8, loss, 2.0, 0.5)
        )  # fmt: skip

    def answer(self, id: int, *delta: float, at: float | None = None) -> Heard:
        """The answer arrives, at its due unless `at` says otherwise."""
        _, assign = self.sent[id]
        return self.step(self.update(id, *delta), assign.due / SECOND if at is None else at)

    def scored(self, version: int, accuracy: float = 0.5, at: float | None = None, loss: float = 1.0) -> Heard:
        """The evaluation of a version is finished."""
        return self.step(ComputeDone(version, EvalResult(loss, accuracy, 10, [accuracy, None], 0.0)), at)

    def timer(self, at: float, rank: int, node: str = "") -> Heard:
        """A stamped timer fires at its stamp."""
        return self.step(TimerFired((round(at * SECOND), rank, node, 0)), at)
