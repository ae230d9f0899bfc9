"""What a run decided, in a form in which two runs can be compared, and the audit of its slots.

A `Trace` stands where a driver has its journal. Of the aggregator's steps it keeps the keys of the
released rows, every record of a decision, and the head and the tensor digests of every assign. It
leaves out `now`, and the faults that only a real run has. Two runs of one condition are equal if
their traces are.

The audit follows each slot through the records, so that it needs to trust no ledger: a slot is
taken at the dispatch and ends at exactly one of close, reject, void.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from flame.core.effects import Effect, Emit, Send
from flame.core.events import Event
from flame.core.messages import AGGREGATOR, Assign
from flame.roles.inbox import Key
from flame.telemetry.records import Abandoned, Accepted, AggRound, Dispatch, Fault, Intrusion, Peer, RunEnd, Selection


@dataclass
class Trace:
    """One run. verdict: None if it never ended. error: what it raised. wall: its last instant, ns since ready."""

    released: list[Key] = field(default_factory=list)
    decisions: list[Any] = field(default_factory=list)
    verdict: str | None = None
    error: str | None = None
    wall: int = 0
    seq: int = 0

    def append(self, node: str, now: int, event: Event, released: Sequence[Key], effects: Sequence[Effect]) -> None:
        """Take one step, as a journal does."""
        self.seq += 1
        if node != AGGREGATOR:
            return
        self.wall = now
        self.released += released
        for effect in effects:
            match effect:
                case Emit(record=Fault()):
                    pass
                case Emit(record=record):
                    self.decisions.append(record)
                    if isinstance(record, RunEnd):
                        self.verdict = record.verdict
                case Send(to=node, msg=Assign() as assign):
                    self.decisions.append(_head(node, assign))

    def close(self) -> None:
        """Nothing is open."""

    def of(self, kind: type) -> list[Any]:
        """The decisions that are records of this type."""
        return [record for record in self.decisions if isinstance(record, kind)]


def _head(node: str, assign: Assign) -> tuple[Any, ...]:
    tensors = tuple((name, tensor.digest) for name, tensor in sorted(assign.payload.tensors.items()))
    work = (assign.id, assign.version, assign.data_id, assign.iteration, assign.draw, assign.stamp, assign.due)
    return (node, *work, assign.payload.kind, tensors)


def difference(ours: Trace, theirs: Trace) -> str | None:
    """The first thing in which two runs differ, for a person; None if they are equal."""
    for what, mine, other in (
        ("release", ours.released, theirs.released),
        ("decision", ours.decisions, theirs.decisions),
        ("verdict", [ours.verdict, ours.error], [theirs.verdict, theirs.error]),
    ):
        if mine != other:
            return _first(what, mine, other)
    return None


def _first(what: str, mine: Sequence[Any], other: Sequence[Any]) -> str:
    place = next((i for i, (a, b) in enumerate(zip(mine, other, strict=False)) if a != b), min(len(mine), len(other)))
    at = [repr(side[place]) if place < len(side) else "nothing" for side in (mine, other)]
    return f"{what} {place} of {len(mine)} and {len(other)}\n  {at[0]}\n  {at[1]}"


def faults_of_slots(trace: Trace) -> Iterator[str]:
    """Dispatches to a node that holds a slot, slots beyond the C in force, cohorts with a node twice."""
    slots: dict[int, str] = {}
    taken: set[int] = set()
    owed: set[int] = set()
    concurrency = 0
    for record in trace.decisions:
        for number in _ended(record, slots, taken):
            slots.pop(number, None)
        match record:
            case Selection(concurrency=in_force):
                concurrency = in_force
            case Dispatch(id=number, trainer=node):
                if node in slots.values():
                    yield f"second dispatch of `{node}`: {number}"
                slots[number] = node
                if len(slots.keys() - owed) > concurrency:
                    yield f"{len(slots.keys() - owed)} slots at the dispatch of {number}, C is {concurrency}"
            case Abandoned(id=number):
                owed.add(number)
            case Accepted(id=number, accepted=True):
                taken.add(number)
            case AggRound(cohort=cohort) if len({member.trainer for member in cohort}) < len(cohort):
                yield f"a trainer twice in cycle {record.at.cycle}"


def _ended(record: Any, slots: dict[int, str], taken: set[int]) -> list[int]:
    """Ids whose slot ends here: rejected, voided by a leave or an intrusion, or closed."""
    match record:
        case Accepted(id=number, accepted=False):
            return [number]
        case Peer(node=node, up=False):
            return [number for number, holder in slots.items() if holder == node and number not in taken]
        case Intrusion(voided=numbers):
            return numbers
        case AggRound(cohort=cohort):
            return [member.id for member in cohort]
    return []


def faults_of_sizes(trace: Trace) -> Iterator[str]:
    """Cycles whose K or C changed before their close, whose K is over C, or that closed with other than K accepts."""
    in_force: dict[int, tuple[int, int]] = {}
    for record in trace.decisions:
        if isinstance(record, Selection | AggRound):
            said = (record.goal, record.concurrency)
            first = in_force.setdefault(record.at.cycle, said)
            if said != first:
                yield f"cycle {record.at.cycle} has K, C {first}, and {said} in its {record.kind}"
            if record.goal > record.concurrency:
                yield f"cycle {record.at.cycle} has K {record.goal} over C {record.concurrency}"
        if isinstance(record, AggRound) and len(record.cohort) != record.goal:
            yield f"cycle {record.at.cycle} closed with {len(record.cohort)} accepts, K {record.goal}"
