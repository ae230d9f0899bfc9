"""Transcripts: a condition, then lines of events with what the aggregator made of each.

    # what it shows
    condition: {goal: 2, concurrency: 3}     YAML, over `tests.stage.PLAIN`; also `init: [0, 0]`
    ---
    start                                    everybody is there, ready
      t0 <- assign 1: ...                    indented: what is expected, made by `play`

Events: `up NODE ...`, `ready` (`start` is both, for everybody), `update ID [(D, D)]`, `timer RANK [NODE]`, `eval VERSION ACCURACY`,
`failed VERSION WHY`, `down NODE WHY`, `stop WHY`; each may end with `at SECONDS`, else an update comes
at its due and all the others at the instant of the last one. `state` prints where the run stands.
Lines of comment and empty lines stay as they are.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

import yaml

from flame.core.effects import CancelTimer, Compute, Effect, Emit, Send, SetTimer, Stop
from flame.core.events import ComputeFailed, PeerDown, Started, StopAsked
from flame.core.machine import IllegalEvent
from flame.core.messages import Assign
from flame.core.time import SECOND
from flame.roles.inbox import Key
from flame.telemetry.records import Accepted, AggEval, AggRound, Dispatch, Fault, Intrusion, Peer, RunEnd, Selection
from tests.stage import Heard, Stage, condition

RANKS = ["stop", "leave", "join", "eval", "timer", "update"]
EVENT = re.compile(r"(?P<verb>\w+)(?P<rest>.*?)(?:\s+at (?P<at>[\d.]+))?$")


def play(text: str) -> str:
    """The transcript with what the aggregator of today answers."""
    head, mark, body = text.partition("\n---\n")
    if not mark:
        raise ValueError("a transcript has a line `---` between its condition and its events")
    given = yaml.safe_load(head)
    stage = Stage(condition(**given["condition"]), tuple(given.get("init", (0.0, 0.0))))
    lines: list[str] = []
    for line in body.splitlines():
        if line.startswith("  "):
            continue
        lines.append(line)
        if line and not line.startswith("#"):
            lines += [f"  {said}" for said in _answer(stage, line)]
    return head + mark + "\n".join(lines) + "\n"


def _answer(stage: Stage, line: str) -> list[str]:
    """What comes of one line."""
    match = EVENT.match(line)
    if match is None or match["verb"] not in VERBS:
        raise ValueError(f"`{line}` is no event; known are {', '.join(VERBS)}")
    before = stage.theta
    try:
        heard = VERBS[match["verb"]](stage, match["rest"].split(), float(match["at"]) if match["at"] else None)
    except IllegalEvent as error:
        return [f"illegal: {error}"]
    if isinstance(heard, list):
        return heard
    released = [f"released {', '.join(map(_row, stage.machine.released))}"] if stage.machine.released else []
    moved = [f"theta {_vector(stage.theta)}"] if stage.theta != before else []
    said = [line for effect in heard.effects for line in _said(effect)]
    return [*released, *said, *moved] or ["nothing"]


# ---- events


def _up(stage: Stage, words: list[str], at: float | None) -> list[str]:
    stage.up(words)
    return []


def _update(stage: Stage, words: list[str], at: float | None) -> Heard:
    delta = [float(word.strip("(,)")) for word in words[1:]]
    return stage.answer(int(words[0]), *delta, at=at)


VERBS: dict[str, Callable[[Stage, list[str], float | None], Heard | list[str]]] = {
    "up": _up,
    "start": lambda stage, words, at: stage.start(),
    "ready": lambda stage, words, at: stage.step(Started()),
    "update": _update,
    "timer": lambda stage, words, at: stage.timer(at or 0.0, RANKS.index(words[0]), *words[1:]),
    "eval": lambda stage, words, at: stage.scored(int(words[0]), float(words[1]), at),
    "failed": lambda stage, words, at: stage.step(ComputeFailed(int(words[0]), " ".join(words[1:])), at),
    "down": lambda stage, words, at: stage.step(PeerDown(words[0], " ".join(words[1:])), at),
    "stop": lambda stage, words, at: stage.step(StopAsked(" ".join(words)), at),
    "state": lambda stage, words, at: _state(stage),
}


# ---- what is said


def _said(effect: Effect) -> Iterator[str]:
    match effect:
        case Emit(record=record):
            yield from RECORDS[type(record)](record)
        case Send(to=to, msg=Assign() as msg):
            place = f"version {msg.version} bin {msg.data_id} iteration {msg.iteration} draw {msg.draw}"
            held = f" ({', '.join(msg.payload.tensors)})" if msg.payload.tensors else ""
            yield f"{to} <- assign {msg.id}: {place}, stamp {_s(msg.stamp)} due {_s(msg.due)}, {msg.payload.kind}{held}"
        case SetTimer(key=key, at=at):
            yield f"set timer {_row(key)}" + ("" if at == key[0] else f" for {_s(at)}")
        case CancelTimer(key=key):
            yield f"cancel timer {_row(key)}"
        case Compute(job=job, not_before=not_before):
            yield f"evaluate version {job}, not before {_s(not_before)}"
        case Stop(verdict=verdict, reason=reason):
            first, *rest = reason.splitlines()
            yield from [f"STOP {verdict}: {first}", *(f"| {line.strip()}" for line in rest)]


def _selection(record: Selection) -> Iterator[str]:
    counts = f"{record.in_flight} in flight, {record.pending} of them taken; K {record.goal} C {record.concurrency}"
    yield f"select {record.policy}: {' '.join(record.chosen)} of {record.eligible} free; {counts}"


def _accepted(record: Accepted) -> Iterator[str]:
    verb = (
        f"accept {record.trainer} #{record.id}, rate {record.rate:g}"
        if record.rate is not None
        else f"reject {record.trainer} #{record.id}: {record.reason}"
    )
    yield f"{verb}, staleness {record.staleness}"


def _round(record: AggRound) -> Iterator[str]:
    cohort = ", ".join(f"{each.trainer} #{each.id}" for each in record.cohort)
    variance = "undefined" if record.variance is None else f"{record.variance:.6g}"
    verdict = f"commit ({record.reason}), |G| {record.grad_norm:.6g}" if record.committed else "keep"
    yield f"close cycle {record.at.cycle}: {cohort}; V {variance} of {record.pool}; {verdict}"


RECORDS: dict[type, Callable[[Any], Iterator[str]]] = {
    Selection: _selection,
    Dispatch: lambda record: iter(()),  # the assign says it all
    Accepted: _accepted,
    AggRound: _round,
    AggEval: lambda record: iter([f"score version {record.version}: accuracy {record.accuracy:g}"]),
    Fault: lambda record: iter([f"fault {record.what} `{record.node}`: {record.detail}"]),
    Peer: lambda record: iter([f"{record.node} {'joins' if record.up else 'leaves'}, {record.why}"]),
    Intrusion: lambda record: iter([f"INTRUSION {record.what}; voided {record.voided}"]),
    RunEnd: lambda record: iter([f"end: {record.accepts} accepts, {record.rejects} rejects, {record.voids} voids"]),
}


def _state(stage: Stage) -> list[str]:
    machine = stage.machine
    roster, cycle, at = machine.roster, machine.cycle, machine.cycle.progress
    quota = "" if cycle.quota is None else f", {cycle.quota} more to dispatch"
    open_rows = [f"{row.node} #{row.id} due {_s(row.due)}" for row in roster.open.values()]
    taken_rows = [f"{row.node} #{row.id}" for row in roster.taken.values()]
    return [
        f"{machine.phase}, {at}, cycle {at.cycle}{quota}; frontier {_s(machine.inbox.frontier)}, now {_s(stage.now)}",
        f"open: {', '.join(open_rows) or '-'}; taken: {', '.join(taken_rows) or '-'}; free: {' '.join(roster.free) or '-'}",
        f"accepted {len(cycle.accepted)} of {cycle.goal}, pool {len(cycle.pool)}, theta {_vector(stage.theta)}",
    ]


def _row(key: Key) -> str:
    stamp, rank, node, number = key
    return " ".join([RANKS[rank], *([node] if node else []), *([f"#{number}"] if number else []), f"@{_s(stamp)}"])


def _s(ns: int) -> str:
    """Seconds, to the nanosecond where need be."""
    return f"{ns // SECOND}.{ns % SECOND:09}".rstrip("0").rstrip(".")


def _vector(values: tuple[float, ...]) -> str:
    return f"({', '.join(f'{value:.6g}' for value in values)})"
