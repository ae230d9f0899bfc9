"""What a simulated machine takes beyond the model: nothing, or draws from a measured law.

`Prompt` is the ideal: a message is there at once, a result at its due. `Drawn` gives each assign one round of legs,
half of it on the way down and half on the way up, and each job what it takes beyond its due.
"""

from typing import Protocol

from flame.config.latency import Law, drawn, read_law
from flame.config.world import World
from flame.core.events import Event, Received
from flame.core.messages import AGGREGATOR, Message, Update
from flame.core.time import in_seconds
from flame.telemetry.records import Lateness


class Latency(Protocol):
    """How late things are, in ns."""

    def leg(self, src: str, to: str, msg: Message) -> int:
        """One way of a message."""
        ...

    def beyond(self, node: str, job: int) -> int:
        """What a job takes beyond its `not_before`."""
        ...

    def late(self, now: int, event: Event) -> Lateness | None:
        """How late what the aggregator receives now is; None where nobody asks."""
        ...


class Prompt:
    """Nothing is ever late."""

    def leg(self, src: str, to: str, msg: Message) -> int:
        """No time."""
        return 0

    def beyond(self, node: str, job: int) -> int:
        """No time."""
        return 0

    def late(self, now: int, event: Event) -> Lateness | None:
        """Nothing to tell."""
        return None


class Drawn:
    """Draws from a law. draw: one number, one sequence of draws."""

    def __init__(self, law: Law, draw: int) -> None:
        self._law, self._draw = law, draw

    def leg(self, src: str, to: str, msg: Message) -> int:
        """Half of its assign's round."""
        trainer, assign = (to if src == AGGREGATOR else src), getattr(msg, "id", 0)
        return drawn(self._law.legs_s, self._draw, "legs", trainer, assign) // 2

    def beyond(self, node: str, job: int) -> int:
        """What the trainer, or an evaluation, takes too long."""
        law = self._law.eval_s if node == AGGREGATOR else self._law.hold_s
        return drawn(law, self._draw, "beyond", node, job)

    def late(self, now: int, event: Event) -> Lateness | None:
        """An update's arrival less its due."""
        if not (isinstance(event, Received) and isinstance(event.msg, Update)):
            return None
        return Lateness(event.msg.id, event.src, in_seconds(now - event.msg.stamp), None)


def latency_of(world: World) -> Latency:
    """The latency that a world asks for. Raises ConfigError for a file that holds no law."""
    return Prompt() if world.latency is None else Drawn(read_law(world.latency), world.draw)
