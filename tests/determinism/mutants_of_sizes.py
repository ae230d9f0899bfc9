"""The rules for K and C, each removed; and K and C that are drawn for each cycle, so that whatever can happen to them does.

A policy moves K by a step now and then. `DRAWN` stands in its place: K in 1 .. `goal` and C in K .. `concurrency`
anew for each cycle, so that C often falls below what is in flight, in the middle of bins too.
"""

from __future__ import annotations

from typing import Any

from flame.core.events import Received
from flame.core.rng import derive
from flame.policies.sizes import Sizes, SizesView, Static, VarTracking
from flame.roles.aggregator import RUNNING, TAKE, Aggregator
from flame.roles.dispatcher import Dispatcher
from flame.roles.inbox import UPDATE

from .mutants import Mutant

Patches = list[tuple[Any, Any, Any]]


def _drawn(self: Static | VarTracking, view: SizesView, state: Any) -> tuple[Sizes, int]:
    cycle = state if isinstance(state, int) else 0
    goal = 1 + derive(cycle, "K") % view.start.goal
    return Sizes(goal, goal + derive(cycle, "C") % (view.start.concurrency - goal + 1)), cycle + 1


DRAWN: Patches = [(Static, "sample", _drawn), (VarTracking, "sample", _drawn)]


def _resampled(self: Aggregator) -> None:
    """K and C anew, in the middle of a cycle."""
    quota = self.cycle.quota
    self._open_cycle(len(self.cycle.pool))
    self.cycle.quota = quota


def _at_accept() -> Patches:
    accept = Aggregator._accept

    def resample(self: Aggregator, *given: Any) -> None:
        accept(self, *given)
        _resampled(self)

    return [(Aggregator, "_accept", resample)]


def _at_arrival() -> Patches:
    received = Aggregator._on_received

    def resample(self: Aggregator, event: Received) -> None:
        received(self, event)
        if self.phase == RUNNING:
            _resampled(self)

    return [(TAKE, Received, resample)]


def _fall_cancels() -> Patches:
    open_cycle = Aggregator._open_cycle

    def cancel(self: Aggregator, *given: Any) -> None:
        open_cycle(self, *given)
        rows = [row for row in reversed(self.roster.open.values()) if not row.owed]
        for row in rows[: max(0, self.roster.in_flight - self.cycle.concurrency)]:
            self.inbox.void((UPDATE, row.node, row.id))
            self._effects += self._dispatcher.forget(row)
            self.roster.reject(row.id)

    return [(Aggregator, "_open_cycle", cancel)]


def _by_the_condition(self: Dispatcher) -> int:
    want = self._condition.concurrency - self._roster.in_flight
    return want if self._cycle.quota is None else min(want, self._cycle.quota)


WILD = Mutant("K and C drawn per cycle", "none is removed", "", DRAWN, dooms=True)
"""A drawn K may be more than the trainers that have stayed, where the condition's would not."""

SIZES = [
    Mutant("sizes_at_accept", "K and C are sampled where a cycle opens", "sizes", [*DRAWN, *_at_accept()]),
    Mutant("sizes_at_arrival", "K and C hang on releases alone", "unequal", [*DRAWN, *_at_arrival()]),
    Mutant("fall_cancels", "when C falls, nothing in flight is taken back", "raised", [*DRAWN, *_fall_cancels()]),
    Mutant("refill_by_condition", "a refill goes by the C in force", "second", [*DRAWN, (Dispatcher, "_wanted", _by_the_condition)]),
]
