"""What a role is to a driver: events in, effects out.

A machine owns no clock, socket, thread, file or generator. Feeding it the same events at the same
`now` gives the same effects, which is what makes a journal a proof (`flame.runtime.books.replay`).
"""

from collections.abc import Sequence
from typing import Protocol

from flame.core.effects import Effect
from flame.core.events import Event, TimerKey


class Machine(Protocol):
    """One node."""

    @property
    def released(self) -> Sequence[TimerKey]:
        """Keys of the rows that the last step set free, in their order."""
        ...

    def step(self, now: int, event: Event) -> list[Effect]:
        """Take one event at `now` (ns since ready) and say what shall be done.

        Raises IllegalEvent where the event can't follow what came before.
        """
        ...

    def describe(self) -> str:
        """Who this is and in which state, in one line."""
        ...


class IllegalEvent(Exception):
    """An event that its machine can't take in its state. The driver adds step and time, and stops the run."""

    def __init__(self, machine: Machine, event: Event | object) -> None:
        super().__init__(f"{machine.describe()} got {event}")
