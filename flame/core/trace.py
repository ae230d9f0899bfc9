"""When a device can be used: a step function of the stamp, known before the run.

A trace is a list of instants with the state that begins at each; the last one at or before `t` holds,
and before the first a device is AVL_TRAIN. With a period it repeats: `t` stands for `t mod period`, the
rule for "before the first" included. Training needs AVL_TRAIN; a device in AVL_EVAL can evaluate only.

`Trace.of` brings any such list into one form: the first instant is 0, neighbours differ, and a trace of
one state has no period. So equal behaviour is an equal value, and every question is one bisection.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal, Self

State = Literal["AVL_TRAIN", "AVL_EVAL", "UN_AVL"]
"""For training and evaluation, for evaluation only, away."""

Event = tuple[int, State]
"""An instant in nanoseconds, and the state that begins there."""


@dataclass(frozen=True, slots=True)
class Trace:
    """The availability of one device, in the one form (see above). Made by `Trace.of`; times are stamps, 0 or later."""

    instants: tuple[int, ...]
    states: tuple[State, ...]
    period: int | None = None
    _starts: tuple[int, ...] = field(init=False, repr=False, compare=False)
    """The instants at which AVL_TRAIN begins."""

    def __post_init__(self) -> None:
        """Raises ValueError for anything but the one form."""
        if self.instants[:1] != (0,) or len(self.instants) != len(self.states):
            raise ValueError(f"a trace begins at 0 and has a state per instant, not {self.instants} and {self.states}")
        if any(one >= other for one, other in pairwise(self.instants)) or any(one == other for one, other in pairwise(self.states)):
            raise ValueError("the instants of a trace rise, and each changes the state")
        if self.period is not None and (len(self.instants) == 1 or self.period <= self.instants[-1]):
            raise ValueError(f"the period {self.period} of a trace is after its last change, of which there is one at least")
        starts = tuple(instant for instant, state in zip(self.instants, self.states, strict=True) if state == "AVL_TRAIN")
        object.__setattr__(self, "_starts", starts)

    @classmethod
    def of(cls, events: Iterable[Event], period: int | None = None) -> Self:
        """A trace of events in any order. Of several at one instant the last stands; one before 0 counts from 0 on."""
        if period is not None and period <= 0:
            raise ValueError(f"the period of a trace is over 0, not {period}")
        begun: dict[int, State] = {0: "AVL_TRAIN"}
        for instant, state in sorted(events, key=lambda event: event[0]):
            if period is None or instant < period:
                begun[max(instant, 0)] = state
        kept: list[Event] = []
        for instant, state in begun.items():
            if not kept or kept[-1][1] != state:
                kept.append((instant, state))
        return cls(tuple(instant for instant, _ in kept), tuple(state for _, state in kept), period if len(kept) > 1 else None)

    def state(self, t: int) -> State:
        """The state that holds at `t`."""
        return self.states[bisect_right(self.instants, self._folded(t)[1]) - 1]

    def available(self, t: int) -> bool:
        """Whether the device can train at `t`."""
        return self.state(t) == "AVL_TRAIN"

    def next_change(self, t: int) -> int | None:
        """The earliest instant after `t` at which another state begins, None for never."""
        lap, within = self._folded(t)
        place = bisect_right(self.instants, within)
        if place < len(self.instants):
            return lap + self.instants[place]
        if self.period is None:
            return None
        return lap + self.period + (0 if self.states[0] != self.states[-1] else self.instants[1])

    def next_available(self, t: int) -> int | None:
        """The earliest instant from `t` on, `t` included, at which the device can train, None for never."""
        if self.available(t):
            return t
        lap, within = self._folded(t)
        place = bisect_left(self._starts, within)
        if place < len(self._starts):
            return lap + self._starts[place]
        return lap + self.period + self._starts[0] if self.period is not None and self._starts else None

    def _folded(self, t: int) -> tuple[int, int]:
        """Where the lap that holds `t` begins, and `t` within it."""
        within = t if self.period is None else t % self.period
        return t - within, within


ALWAYS = Trace.of(())
"""A device that is never away."""
NEVER = Trace.of([(0, "UN_AVL")])
"""A device that is never there."""
