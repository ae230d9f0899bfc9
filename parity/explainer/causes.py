"""Why two released sequences part, judged from what the telemetry and the journals of both runs say.

Each cause has a witness: a function that gives the lines of evidence, or None. They are asked in an order in which
the stronger claim comes first: a machine that isn't a function of its inputs explains all that follows; a peer that
is gone explains a late update, and so does an overrun; two arrivals that were simply close explain what nothing
else does. The row to look at is the one that a run *lacks* where the other has released it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl

from parity.derived.lateness import disturbances, end_ns, is_on_time, jitter_s, span_of
from parity.derived.released import INTRUSION, UPDATE, Released, Row, View, effect_of
from parity.derived.replayed import Replayed, replayed_if_readable
from parity.evidence import Pair, Run
from parity.explainer.parting import Parting
from parity.explainer.story import Cause, Names
from parity.measures.compare import show

RECENT = 2
"""How many times C rows before the parting are "just before" it."""

Evidence = list[str]


@dataclass(frozen=True, slots=True)
class Case:
    """What the witnesses look at. parting: None where only a replay differs."""

    pair: Pair
    names: Names
    view: View
    sequences: tuple[Released, Released]
    parting: Parting | None

    def sides(self) -> Iterator["Lack"]:
        """Each run with the row that it lacks, and the one that it released instead."""
        if self.parting is not None and self.parting.what == "row":
            rows = (self.parting.real, self.parting.sim)
            for run, name, sequence, has, lacks in zip(self.pair.runs, self.names, self.sequences, rows, rows[::-1], strict=True):
                yield Lack(run, name, sequence, has, lacks)


@dataclass(frozen=True, slots=True)
class Lack:
    """One run at the parting. has: what it released there, None at its end; lacks: what the other one did."""

    run: Run
    name: str
    sequence: Released
    has: Row | None
    lacks: Row | None

    @property
    def update(self) -> int | None:
        """Id of the update that is lacking."""
        return self.lacks.key[3] if self.lacks is not None and self.lacks.key[1] == UPDATE else None

    @property
    def is_real(self) -> bool:
        """Whether things take their own time in it."""
        return self.run.dir.world.kind == "real"


def judge(case: Case) -> tuple[Cause, Evidence]:
    """The cause and its evidence."""
    for cause, witness in WITNESSES:
        evidence = witness(case)
        if evidence is not None:
            return cause, evidence
    return "UNKNOWN", ["no fault, no lost update, no overrun, no other effect; the two rows are farther apart than the jitter"]


# ---- LOGIC


def broken(case: Case) -> tuple[Run, str, Replayed] | None:
    """The first node whose replay differs, no later than the parting."""
    found = [
        (run, name, node)
        for run, name, row in zip(case.pair.runs, case.names, _rows(case), strict=True)
        for node in replayed_if_readable(run)
        if node.difference is not None and (row is None or row.now is None or node.now is None or node.now <= row.now)
    ]
    return min(found, key=lambda each: each[2].now or 0, default=None)


def _rows(case: Case) -> tuple[Row | None, Row | None]:
    return (None, None) if case.parting is None else (case.parting.real, case.parting.sim)


def _replays_differently(case: Case) -> Evidence | None:
    found = broken(case)
    return None if found is None else [f"{found[1]} `{found[2].node}` isn't a function of its inputs: {found[2].difference}"]


def _other_effects(case: Case) -> Evidence | None:
    parted = case.parting
    if parted is None or parted.what != "effects" or parted.effect is None:
        return None
    real, sim = (effect_of(run, case.view, parted.effect) for run in case.pair.runs)
    one, two = case.names
    return [f"the same rows, another effect: {one} {_what(real)}, {two} {_what(sim)}", *_differing(case.names, real, sim)]


def _what(effect: dict[str, Any] | None) -> str:
    if effect is None:
        return "did no more"
    kind = f"emit {effect['record']['kind']}" if effect["kind"] == "emit" else effect["kind"]
    return f"{kind} to {effect['to']}" if "to" in effect else kind


def _differing(names: Names, real: Any, sim: Any, path: str = "", most: int = 3) -> list[str]:
    """The first fields in which two effects differ, with both values."""
    if isinstance(real, dict) and isinstance(sim, dict):
        lines = [line for key in real for line in _differing(names, real[key], sim.get(key), f"{path}.{key}" if path else key)]
        return lines[:most]
    return [f"`{path}` {names[0]} {show(real)}   {names[1]} {show(sim)}"] if path and real != sim else []


def _another_result(case: Case) -> Evidence | None:
    parted = case.parting
    if parted is None or parted.what != "content" or parted.real is None:
        return None
    lines = [f"{parted.real} is the same row in both, and it brought something else: its compute isn't a function of its task"]
    devices = [", ".join(sorted(set(run.frame("run_meta")["device"].drop_nulls()))) for run in case.pair.runs]
    return lines if devices[0] == devices[1] else [*lines, f"{case.names[0]} computed on {devices[0]}, {case.names[1]} on {devices[1]}"]


def _out_of_order(case: Case) -> Evidence | None:
    if not case.pair.exact or case.parting is None:
        return None
    real, sim = _rows(case)
    if real is not None and sim is not None and real.key[1:] == sim.key[1:]:
        return ["it is the same row, with another stamp"]
    return ["in stamp order nothing of time decides what is released; a role or the inbox does"]


# ---- FAULT and LOST


def _lost_peer(case: Case) -> Evidence | None:
    for side in case.sides():
        if side.has is not None and side.has.key[1] == INTRUSION and _names_a_peer(side):
            return [f"{side.name} lost `{side.has.key[2]}`: {side.has.content}" if side.has.key[2] else f"{side.name} {side.has.content}"]
        if side.update is not None and (told := _down_meanwhile(side, side.update)):
            return [f"{side.name} released update {side.update} late, or never: it waited for a fault", *told]
    return None


def _names_a_peer(side: Lack) -> bool:
    """A peer that is down gives rows up; who only asks for a stop gives up none."""
    assert side.has is not None
    voids = side.run.frame("intrusion").filter(pl.col("what").str.starts_with("lost `"))["what"].to_list()
    return bool(side.has.key[2]) or side.has.content in voids


def _down_meanwhile(side: Lack, update: int) -> Evidence:
    """What went down or came back between the dispatch of the lacking update and its release, if that was late indeed."""
    span = span_of(side.run, update)
    if span is None or is_on_time(side.run, update):
        return []
    between = side.run.derived(disturbances).filter(pl.col("_t_ns").is_between(*span, closed="none"))
    return [f"{side.name} {at / 1e9:.3f} {told}" for at, told in between.head(3).iter_rows()]


def _never_received(case: Case) -> Evidence | None:
    for side in case.sides():
        if side.update is None or side.update in side.sequence.received:
            continue
        sent = side.run.frame("task_send").filter(pl.col("id") == side.update).select("trainer", "_t_ns")
        if sent.height and end_ns(side.run) - sent["_t_ns"][0] > jitter_s(side.run) * 1e9:
            at, trainer = sent["_t_ns"][0] / 1e9, sent["trainer"][0]
            return [f"{side.name} `{trainer}` sent update {side.update} at {at:.3f}, and it was never received", *_refused(side)]
    return None


def _refused(side: Lack) -> Evidence:
    refused = side.run.frame("fault").filter(pl.col("what") == "refused")["detail"]
    return [f"{side.name} refused {refused.len()} messages: {refused[0]}"] if refused.len() else []


def _ended_from_outside(case: Case) -> Evidence | None:
    for side in case.sides():
        if side.has is not None and side.has.key[1] == INTRUSION:
            return [f"{side.name} was ended from outside: {side.has.content}"]
        verdict = side.run.verdict
        if side.has is None and (verdict is None or verdict.verdict == "CRASH"):
            return [f"{side.name} has no more rows: {'it has no verdict' if verdict is None else f'CRASH, {verdict.reason}'}"]
    return None


# ---- OVERRUN and RACE


def _overran(case: Case) -> Evidence | None:
    for side in case.sides():
        if side.is_real and side.update is not None and (told := _overruns(side, [side.update])):
            return told
    return None


def _overran_before(case: Case) -> Evidence | None:
    for side in case.sides():
        if side.is_real and (told := _overruns(side, [row.key[3] for row in _recent(case, side) if row.key[1] == UPDATE])):
            return ["just before:", *told]
    return None


def _overruns(side: Lack, ids: list[int]) -> Evidence:
    """The computes among `ids` that took longer than they were allowed."""
    rounds = side.run.frame("trainer_round").filter(pl.col("overran") & pl.col("id").is_in(ids))
    return [
        f"{side.name} `{row['trainer']}` computed update {row['id']} for {_seconds(row, 'compute')}"
        f" (after {_seconds(row, 'queue')} in the queue), and its D is {row['delay_ns'] / 1e9:.3f} s"
        for row in rounds.head(2).iter_rows(named=True)
    ]


def _seconds(row: dict[str, Any], phase: str) -> str:
    measured = pl.Series([row["phases"] or "{}"]).str.json_path_match(f"$.{phase}")[0]
    return "- s" if measured is None else f"{float(measured):.3f} s"


def _recent(case: Case, side: Lack) -> list[Row]:
    end = _index(case)
    return side.sequence.rows[max(0, end - RECENT * case.pair.condition.concurrency) : end]


def _index(case: Case) -> int:
    return 0 if case.parting is None or case.parting.index is None else case.parting.index


def _close_arrivals(case: Case) -> Evidence | None:
    return _race(case, max((jitter_s(run) for run in case.pair.runs), default=0.0), "lateness spreads over")


def _close_after_drift(case: Case) -> Evidence | None:
    """Arrivals of the same update drift apart over cycles, each a leg later than the last."""
    side = next(case.sides(), None)
    if case.pair.exact or side is None:
        return None
    count, end = len(_recent(case, side)), _index(case)
    recent = [sequence.rows[end - count : end] for sequence in case.sequences]
    apart = [one.key[0] - two.key[0] for one, two in zip(*recent, strict=True)]
    return _race(case, (max(apart) - min(apart)) / 1e9, "arrivals before it differ between the runs by up to") if apart else None


def _race(case: Case, jitter: float, how: str) -> Evidence | None:
    parted = case.parting
    if parted is None or parted.real is None or parted.sim is None or parted.real.key[1:] == parted.sim.key[1:]:
        return None
    gaps = [
        (abs(one.key[0] - two.key[0]) / 1e9, name)
        for sequence, name in zip(case.sequences, case.names, strict=True)
        if (one := sequence.find(*parted.real.key[1:])) and (two := sequence.find(*parted.sim.key[1:]))
    ]
    gap, name = min(gaps, default=(None, ""))
    if gap is None or gap > jitter:
        return None
    return [f"{parted.real.name} and {parted.sim.name} are {1e3 * gap:.1f} ms apart in {name}; {how} {1e3 * jitter:.1f} ms"]


WITNESSES: tuple[tuple[Cause, Callable[[Case], Evidence | None]], ...] = (
    ("LOGIC", _replays_differently),
    ("FAULT", _lost_peer),
    ("LOST", _never_received),
    ("FAULT", _ended_from_outside),
    ("LOGIC", _other_effects),
    ("LOGIC", _another_result),
    ("OVERRUN", _overran),
    ("RACE", _close_arrivals),
    ("OVERRUN", _overran_before),
    ("RACE", _close_after_drift),
    ("LOGIC", _out_of_order),
)
"""Who is asked, in this order."""
