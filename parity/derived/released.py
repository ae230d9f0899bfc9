"""What an aggregator went through: the sequence of released rows, and what it did after each.

Every decision is a function of the released sequence alone (docs/time.md), so two runs that part do so in one
of two ways: another row was released, or the same rows led to other effects. The order in which things
*arrived* differs even in an exact pair; it isn't looked at.

The journal tells it, with content digests: an update is compared by what it brought, not by its id alone. Where a
run kept no journal its telemetry tells less: rows, and no effects. Intrusions stand among the rows, since they
decide too. `now` is left out always; a `View` may leave out all that is of the clock.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

import orjson

from flame.telemetry.columns import KINDS, level
from flame.telemetry.records import LEVELS
from parity.evidence import Pair, Run

INTRUSION, STOP, FAULT, JOIN, EVAL, TIMER, UPDATE = range(-1, 6)
RANKS = {
    INTRUSION: "intrusion", STOP: "stop", FAULT: "leave", JOIN: "join", EVAL: "evaluation", TIMER: "timer", UPDATE: "update",
}  # fmt: skip
"""Ranks of rows, as the inbox has them, and of what is no row."""

Key = tuple[int, int, str, int]
"""(stamp, rank, node, id)."""

ALWAYS_OUT = frozenset({"sent_now"})
CLOCK = frozenset({"stamp", "due", "not_before", "state"})
"""Fields of the clock, beside those in `_ns`; the ledger's digest is made of stamps."""


@dataclass(frozen=True, slots=True)
class View:
    """What of two runs is compared. logical: nothing of the clock. evals: evaluations too. kinds: records that both made."""

    logical: bool
    evals: bool
    kinds: frozenset[str]

    @classmethod
    def of(cls, pair: Pair, logical: bool = False) -> "View":
        """The fullest view in which the pair must agree. In arrival order stamps and the turn of an evaluation are measured."""
        common = min(LEVELS.index(run.level) for run in pair.runs)
        kinds = {kind for kind in KINDS if LEVELS.index(level(kind)) <= common} - {"fault"}
        return cls(logical or not pair.exact, pair.exact, frozenset(kinds if pair.exact else kinds - {"agg_eval"}))

    def bare(self, value: Any) -> Any:
        """The value without what this view leaves out."""
        if isinstance(value, dict):
            return {key: self.bare(self._handle(key, item)) for key, item in value.items() if not self._out(key, item)}
        return [self.bare(item) for item in value] if isinstance(value, list) else value

    def digest(self, value: Any) -> str:
        """Equal for values that are equal in this view."""
        return blake2b(orjson.dumps(self.bare(value)), digest_size=8).hexdigest()

    def same_key(self, one: Key, two: Key) -> bool:
        """Whether two rows are the same in this view."""
        return one[1:] == two[1:] if self.logical else one == two

    def _handle(self, key: str, item: Any) -> Any:
        """Of a timer's key what stays when its stamp is left out."""
        return item[1:] if self.logical and key == "key" and isinstance(item, list) else item

    def _out(self, key: str, item: Any) -> bool:
        of_clock = key in CLOCK or key.endswith("_ns") or (key == "at" and isinstance(item, int))
        return key in ALWAYS_OUT or (self.logical and of_clock)


@dataclass(frozen=True, slots=True)
class Row:
    """One released row, or an intrusion. content: digest of what it brought. step, now: of the journal, None without one."""

    key: Key
    content: str
    cycle: int
    step: int | None = None
    now: int | None = None

    def __str__(self) -> str:
        return f"{self.name} at {self.key[0] / 1e9:.3f}"

    @property
    def name(self) -> str:
        """What it is, and whose."""
        _, rank, node, number = self.key
        what = f"{RANKS[rank]} {number}" if rank in (EVAL, TIMER, UPDATE) else RANKS[rank]
        return f"{what} of {node}" if node else what


@dataclass(slots=True)
class Released:
    """The sequence of one run.

    effects: (step, digest) of what was done, one after another. marks: number of rows -> number of effects, where a step
    ended. received: ids of updates that arrived -> the step. last: the last step. note: why there is no journal.
    """

    rows: list[Row] = field(default_factory=list)
    effects: list[tuple[int, str]] = field(default_factory=list)
    marks: dict[int, int] = field(default_factory=dict)
    received: dict[int, int] = field(default_factory=dict)
    last: int | None = None
    note: str | None = None

    def find(self, rank: int, node: str, id: int) -> Row | None:
        """The row of that handle."""
        return next((row for row in self.rows if row.key[1:] == (rank, node, id)), None)


def released(pair: Pair, view: View) -> tuple[Released, Released]:
    """The sequences of both runs: from their journals, or, where one has none, both from telemetry."""
    one, two = (_from_journal(run, view) for run in pair.runs)
    if one.note is None and two.note is None:
        return one, two
    told = [_from_telemetry(run, view) for run in pair.runs]
    for run, journal, other in zip(pair.runs, (one, two), told, strict=True):
        other.note = None if journal.note is None else f"{run.dir.label}: {journal.note}"
    return told[0], told[1]


# ---- from the journal


def journal_steps(run: Run, node: str) -> Iterator[dict[str, Any]]:
    """The recorded steps of the first journal that hosts `node`, in order. Raises CorruptJournal; nothing without one."""
    path = _journal(run.dir.path / "journal", node)
    if path is not None:
        from flame.runtime.books.journal import read

        yield from (step for step in read(path)[1] if step["node"] == node)


def _journal(folder: Path, node: str) -> Path | None:
    return next((path for path in sorted(folder.glob("*.jsonl")) if node in _hosts(path)), None)


def _hosts(path: Path) -> list[str]:
    """The nodes of a journal, as its header has them; none where it has no header."""
    with path.open("rb") as file:
        try:
            nodes: list[str] = orjson.loads(file.readline())["header"]["nodes"]
        except (orjson.JSONDecodeError, KeyError, TypeError):
            return []
    return nodes


def _from_journal(run: Run, view: View) -> Released:
    from flame.runtime.books.journal import CorruptJournal

    found, reader = Released(), _Steps(view)
    try:
        for step in journal_steps(run, "aggregator"):
            reader.take(step, found)
    except CorruptJournal as error:
        found.note = str(error)
    if found.last is None:
        found.note = found.note or "it kept no journal, or one without a header"
    return found


class _Steps:
    """Turns steps into rows and effects; remembers what has arrived and was not released."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._arrived: dict[tuple[int, str, int], str] = {}
        self._cycle = 0

    def take(self, step: dict[str, Any], found: Released) -> None:
        event, number, now = step["event"], step["seq"], step["now"]
        self._arrive(event, number, found)
        effects = [effect for effect in step["effects"] or [] if self._judged(effect)]
        cycles = {each["record"]["id"]: each["record"]["at"]["cycle"] for each in effects if _emits(each, "accepted")}
        if event["kind"] in ("peer_down", "stop_asked"):
            why = event["why"]
            found.rows.append(Row((now, INTRUSION, event.get("node", ""), 0), why, self._cycle, number, now))
        for stamp, rank, node, row in step["released"]:
            if rank != EVAL or self._view.evals:
                content = self._arrived.pop((rank, node, row), "")
                found.rows.append(Row((stamp, rank, node, row), content, cycles.get(row, self._cycle), number, now))
        found.effects += [(number, self._view.digest(effect)) for effect in effects]
        found.marks[len(found.rows)] = len(found.effects)
        found.last = number
        self._cycle += sum(_emits(effect, "agg_round") for effect in effects)

    def _arrive(self, event: dict[str, Any], number: int, found: Released) -> None:
        if event["kind"] == "received":
            found.received.setdefault(event["msg"]["id"], number)
            self._arrived.setdefault((UPDATE, event["src"], event["msg"]["id"]), self._view.digest(event["msg"]))
        elif event["kind"] == "compute_done":
            self._arrived.setdefault((EVAL, "", event["job"]), self._view.digest(event["result"]))

    def _judged(self, effect: dict[str, Any]) -> bool:
        return effect["kind"] != "emit" or effect["record"]["kind"] in self._view.kinds


def effect_of(run: Run, view: View, number: int) -> dict[str, Any] | None:
    """Effect `number` of the aggregator's stream as the view has it; read again, since only digests are kept."""
    seen, reader = 0, _Steps(view)
    for step in journal_steps(run, "aggregator"):
        effects = [effect for effect in step["effects"] or [] if reader._judged(effect)]
        if number < seen + len(effects):
            bare: dict[str, Any] = view.bare(effects[number - seen])
            return bare
        seen += len(effects)
    return None


def _emits(effect: dict[str, Any], kind: str) -> bool:
    return bool(effect["kind"] == "emit" and effect["record"]["kind"] == kind)


# ---- from telemetry

BROUGHT = ("version", "data_id", "iteration", "loss", "utility")


def _from_telemetry(run: Run, view: View) -> Released:
    """Rows as the records have them: updates, abandons, intrusions, planned comings and goings; evaluations."""
    rows = sorted(_told(run, view), key=lambda numbered: numbered[0])
    found = Released([row for _, row in rows])
    found.received = {row.key[3]: -1 for row in found.rows if row.key[1] == UPDATE}
    return found


def _told(run: Run, view: View) -> Iterable[tuple[int, Row]]:
    for each in run.frame("accepted").iter_rows(named=True):
        content = view.digest({name: each[name] for name in BROUGHT})
        yield each["_seq"], Row((each["interval_ns"][1], UPDATE, each["trainer"], each["id"]), content, each["cycle"])
    for each in run.frame("abandoned").iter_rows(named=True):
        yield each["_seq"], Row((each["stamp_ns"], TIMER, each["trainer"], each["id"]), "", each["cycle"])
    for each in run.frame("intrusion").iter_rows(named=True):
        yield each["_seq"], Row((each["_t_ns"], INTRUSION, "", 0), each["what"], each["cycle"])
    for each in run.frame("agg_eval").iter_rows(named=True) if view.evals else ():
        content = view.digest({name: each[name] for name in ("loss", "accuracy")})
        yield each["_seq"], Row((each["stamp_ns"], EVAL, "", each["version"]), content, each["cycle"])
