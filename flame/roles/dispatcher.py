"""The dispatcher: which slots are filled now, by whom, and with what.

It fills what is free at a stamp: at most C slots, at most the quota of a synchronous cycle, from nodes that
have no row and are believed available. A node whose trace ends away can't answer and is retired instead.
When somebody is wanted and nobody can be chosen, a stamped `wake` row stands at the next instant at which
somebody will be believed back; a nearer one moves it there. Nobody away: no wake, so a run that can't
advance is found.

An assign's due is known when it is handed out: D, and the legs of a modelled network, down with what is sent,
up with an upload of the condition's kind, whose bytes are known before it is made.

Where slots are given up after a while (`availability.abandon_s`), each assign brings a timer row: at its
release the slot is free, the update stays owed and the node busy.
"""

from collections.abc import Callable

from flame.config.condition import Condition
from flame.core.effects import CancelTimer, Effect, Emit, Send, SetTimer
from flame.core.messages import Assign, Payload
from flame.policies.select import SelectView
from flame.roles.cycle import Cycle
from flame.roles.in_force import InForce
from flame.roles.inbox import OWN, TIMER, UPDATE, Inbox, Key
from flame.roles.roster import Legs, Roster, Row
from flame.telemetry.records import Dispatch, Selection, Withheld

Outgoing = Callable[[int | None], Payload]
"""What goes to a trainer that was sent that version last."""


class Dispatcher:
    """Opens rows. up_bytes: of the longest upload. detailed: whether records of the level `full` are made."""

    def __init__(
        self, condition: Condition, in_force: InForce, roster: Roster, inbox: Inbox, cycle: Cycle, up_bytes: int, *, detailed: bool
    ) -> None:  # fmt: skip
        self._condition, self._in_force, self._roster, self._inbox, self._cycle = condition, in_force, roster, inbox, cycle
        self._detailed = detailed
        self._abandon_ns = condition.availability.abandon_ns
        self._up_ns = condition.wan.up(up_bytes)
        self._selections = 0
        self._wake: Key | None = None
        self._wakes = 0

    def fill(self, now: int, stamp: int, outgoing: Outgoing) -> list[Effect]:
        """Fill what can be filled at `stamp`."""
        effects: list[Effect] = []
        self._roster.advance(stamp)
        while (want := self._wanted()) > 0 and self._roster.free:
            chosen = self._choose(want, effects)
            payloads = {node: outgoing(self._roster.members[node].held) for node in chosen}
            answering = [node for node in chosen if self._answers(node, stamp, payloads[node])]
            for node in answering:
                self._dispatch(node, now, stamp, payloads[node], effects)
            if len(answering) == len(chosen):
                break
        if self._wanted() > 0 and not self._roster.free:
            self._set_wake(stamp, effects)
        return effects

    def _wanted(self) -> int:
        want = self._cycle.concurrency - self._roster.in_flight
        return want if self._cycle.quota is None else min(want, self._cycle.quota)

    def _choose(self, want: int, effects: list[Effect]) -> list[str]:
        roster, cycle = self._roster, self._cycle
        view = SelectView(
            roster.free, cycle.progress, self._condition.seed, self._selections, roster.standings, roster.unexplored
        )  # fmt: skip
        chosen = self._in_force.choose(view, want)
        self._selections += 1
        if self._detailed:
            by, scores = self._in_force.chosen_by()
            record = Selection(
                cycle.progress, len(roster.members), len(roster.free), chosen, roster.in_flight, len(roster.taken),
                cycle.concurrency, cycle.goal, by, roster.free.fingerprint, scores,
            )  # fmt: skip
            effects.append(Emit(record))
        return chosen

    def _answers(self, node: str, stamp: int, payload: Payload) -> bool:
        """Whether an assign of `stamp` can ever be answered; a node that can't answer any is retired."""
        if self._roster.due(node, stamp, self._legs(payload)) is not None:
            return True
        self._roster.retire(node)
        return False

    def _dispatch(self, node: str, now: int, stamp: int, payload: Payload, effects: list[Effect]) -> None:
        row = self._roster.dispatch(node, stamp, self._cycle.progress, payload.kind, self._legs(payload))
        self._inbox.expect((row.due, UPDATE, node, row.id))
        effects.append(Send(node, Assign(row.id, row.version, row.data_id, row.iteration, row.draw, stamp, row.due, now, payload)))
        if self._cycle.quota is not None:
            self._cycle.quota -= 1
        if self._detailed:
            self._emit_dispatch(row, effects)
        if self._abandon_ns is not None:
            self._set_timer((stamp + self._abandon_ns, TIMER, node, row.id), effects)

    def _legs(self, payload: Payload) -> Legs:
        return Legs(self._condition.wan.down(payload.nbytes), self._up_ns)

    def _emit_dispatch(self, row: Row, effects: list[Effect]) -> None:
        delay, at = self._roster.members[row.node].duration + sum(row.legs), self._cycle.progress
        effects.append(
            Emit(Dispatch(at, row.id, row.node, row.stamp, row.due, delay, row.legs.up, row.payload, row.draw, self._roster.in_flight))
        )  # fmt: skip
        if row.due > row.stamp + delay:
            effects.append(Emit(Withheld(at, row.id, row.node, row.stamp + delay, row.due)))

    # ---- timers

    def forget(self, row: Row) -> list[Effect]:
        """A row has ended: its slot can't be given up any more."""
        if self._abandon_ns is None:
            return []
        return self._cancel(self._inbox.key((TIMER, row.node, row.id)))

    def woken(self) -> None:
        """The wake row was released."""
        self._wake = None

    def _set_wake(self, stamp: int, effects: list[Effect]) -> None:
        at = self._roster.next_free(stamp)
        if at is None or (self._wake is not None and self._wake[0] <= at):
            return
        effects += self._cancel(self._wake)
        self._wakes += 1
        self._wake = (at, TIMER, OWN, self._wakes)
        self._set_timer(self._wake, effects)

    def _set_timer(self, key: Key, effects: list[Effect]) -> None:
        self._inbox.expect(key)
        effects.append(SetTimer(key, key[0]))

    def _cancel(self, key: Key | None) -> list[Effect]:
        if key is None:
            return []
        self._inbox.void(key[1:])
        return [CancelTimer(key)]
