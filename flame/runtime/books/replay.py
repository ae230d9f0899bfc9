"""Replay: feed a journal to fresh machines and compare every effect, byte for byte.

If they differ, a machine is not a function of its inputs, and that is always a bug. If they don't,
and two runs still part, then their inputs differed, and the first differing released row says where.
Tensors come back from the run's blobs; without blobs nothing can be replayed, which is said.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from math import nan
from pathlib import Path
from typing import Any

import orjson
from pydantic import ConfigDict, TypeAdapter

from flame.config.condition import Condition
from flame.config.devices import profiles
from flame.core.events import Event
from flame.core.machine import IllegalEvent, Machine
from flame.core.messages import AGGREGATOR, Update
from flame.core.tasks import EvalResult, GradientResult
from flame.core.tensor import Tensor
from flame.core.time import in_seconds
from flame.learn.params import Layout
from flame.roles.aggregator import Aggregator
from flame.roles.trainer import Trainer
from flame.runtime.books.blobs import Blobs
from flame.runtime.books.journal import CorruptJournal, dump, read
from flame.telemetry.records import Level

EVENTS: TypeAdapter[Event] = TypeAdapter(Event, config=ConfigDict(arbitrary_types_allowed=True))
FLOATS = {name.name for kind in (Update, GradientResult, EvalResult) for name in fields(kind) if name.type is float}
"""Measures that may be not finite. JSON has no such number and writes null, so null is read as NaN; no decision tells the two apart."""


@dataclass(slots=True)
class NodeReplay:
    """One node's journal, replayed. difference: the first step whose effects differ, `step` at `now`. skipped: why it wasn't replayed."""

    node: str
    steps: int = 0
    difference: str | None = None
    skipped: str | None = None
    step: int | None = None
    now: int | None = None


@dataclass(slots=True)
class Stepped:
    """One replayed step, for `flame replay --print`. machine: as it is now, and goes on."""

    seq: int
    node: str
    now: int
    event: Event
    released: list[list[Any]]
    state: str
    effects: bytes = field(repr=False)
    machine: Machine = field(repr=False)


def replay(run: Path) -> list[NodeReplay]:
    """Replay every journal of a run directory, and report by node."""
    condition = load_condition(run)
    found: dict[str, NodeReplay] = {}
    for path in sorted((run / "journal").glob("*.jsonl")):
        report = _replay_file(condition, run, path)
        for node in report.values():
            before = found.setdefault(node.node, NodeReplay(node.node))
            before.steps += node.steps
            if before.difference is None:
                before.difference, before.step, before.now = node.difference, node.step, node.now
            before.skipped = before.skipped or node.skipped
    return list(found.values()) or [NodeReplay("-", skipped="the run kept no journal")]


def _replay_file(condition: Condition, run: Path, path: Path) -> dict[str, NodeReplay]:
    header, _ = read(path)
    report = {node: NodeReplay(node) for node in header["nodes"]}
    if not header["blobs"]:
        for node in report.values():
            node.skipped = "the run kept no blobs (blobs: none), so steps 0 to the end can't be replayed"
        return report
    try:
        for step in steps(condition, run, path):
            node = report[step.node]
            node.steps += 1
    except Divergence as error:
        node = report[error.node]
        node.difference, node.step, node.now = str(error), error.step, error.now
    return report


class Divergence(Exception):
    """A replayed step whose effects are not the recorded ones. step, now: of the recorded one."""

    def __init__(self, recorded: dict[str, Any], what: str) -> None:
        super().__init__(what)
        self.node, self.step, self.now = recorded["node"], recorded["seq"], recorded["now"]


def steps(condition: Condition, run: Path, path: Path) -> Iterator[Stepped]:
    """Replay one journal. Raises Divergence at the first step that differs, CorruptJournal where it can't be read.

    An event that was illegal must be illegal again, and is the last step: a run doesn't go on after it.
    """
    header, recorded = read(path)
    blobs = Blobs(run / "blobs")
    machines = _Machines(condition, blobs.get(header["init"]), header["bins"], header["level"], _layout(header["layout"]))
    illegal: Divergence | None = None
    for step in recorded:
        if illegal is not None:
            raise illegal
        event = EVENTS.validate_python(_with_tensors(step["event"], blobs.get))
        machine = machines[step["node"]]
        try:
            effects = dump(machine.step(step["now"], event))
            _compare(step, effects, machine)
        except IllegalEvent as error:
            effects, illegal = b"null", Divergence(step, f"step {step['seq']}: {error}")
            if step["effects"] is not None:
                raise illegal from None
        yield Stepped(step["seq"], step["node"], step["now"], event, step["released"], machine.describe(), effects, machine)


def _compare(step: dict[str, Any], effects: bytes, machine: Machine) -> None:
    place = f"step {step['seq']} of {step['node']} at {in_seconds(step['now']):.3f} s"
    if [list(key) for key in machine.released] != step["released"]:
        raise Divergence(step, f"{place}: released {machine.released}, recorded {step['released']}")
    if step["effects"] is None:
        raise Divergence(step, f"{place}: the event is legal now, and was illegal then")
    if effects != orjson.dumps(step["effects"]):
        raise Divergence(step, f"{place}: {_first_difference(orjson.loads(effects), step['effects'])}")


def _first_difference(now: list[Any], then: list[Any]) -> str:
    for number, (mine, recorded) in enumerate(zip(now, then, strict=False)):
        if mine != recorded:
            return f"effect {number} is {_short(mine)}, recorded {_short(recorded)}"
    return f"{len(now)} effects, recorded {len(then)}"


def _short(value: Any) -> str:
    text = orjson.dumps(value).decode()
    return text if len(text) <= 300 else text[:300] + " ..."


def _with_tensors(plain: Any, get: Callable[[str], Tensor]) -> Any:
    if isinstance(plain, dict):
        if plain.keys() == {"blob"}:
            return get(plain["blob"])
        return {key: nan if value is None and key in FLOATS else _with_tensors(value, get) for key, value in plain.items()}
    return [_with_tensors(value, get) for value in plain] if isinstance(plain, list) else plain


def _layout(plain: dict[str, Any]) -> Layout:
    return Layout(tuple(plain["names"]), tuple(tuple(shape) for shape in plain["shapes"]), plain["dtype"])


class _Machines(dict[str, Machine]):
    """Fresh machines, made when their first step comes."""

    def __init__(self, condition: Condition, init: Tensor, bins: int, level: Level, layout: Layout) -> None:
        self._make, self._profiles = (condition, init, bins, level, layout), profiles(condition)

    def __missing__(self, node: str) -> Machine:
        condition, init, bins, level, layout = self._make
        if node == AGGREGATOR:
            self[node] = Aggregator(condition, init, bins, level, layout)
        elif node in self._profiles:
            self[node] = Trainer(condition, self._profiles[node], level, layout)
        else:
            raise CorruptJournal(f"the journal has steps of `{node}`, which isn't in the condition")
        return self[node]


def load_condition(run: Path) -> Condition:
    """The condition that a run directory holds. Raises FileNotFoundError."""
    return Condition.model_validate(orjson.loads((run / "condition.json").read_bytes())["condition"])
