"""How a pair is made to part at a given cycle, once for each cause. Each returns (pair, expected row, what real has there)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl

from flame.core.progress import Progress
from flame.telemetry.records import Fault, Intrusion
from flame.telemetry.rundir import RunPair
from tests.parity.edits import Edit, Line
from tests.parity.fixtures import arriving, condition, write_pair

FIRST, SECOND = "t2", "t1"
"""The second and the third to answer in each cycle, half a second apart."""

Parted = tuple[RunPair, int, str]


def ids(pair: RunPair, cycle: int) -> tuple[int, int]:
    """The assigns of FIRST and SECOND in that cycle."""
    rows = pair.sim.telemetry.frame("dispatch").select("trainer", "cycle", "id").rows()
    found = {(trainer, at): key for trainer, at, key in rows}
    return found[FIRST, cycle], found[SECOND, cycle]


def is_id(number: int) -> Callable[[Line], bool]:
    """Whether a record is about that assign."""
    return lambda record: record.get("id") == number


def row_of(pair: RunPair, cycle: int) -> int:
    """The number of the second update of that cycle among the rows, of which evaluations are some in stamp order."""
    evaluations = pair.sim.telemetry.frame("agg_eval").filter(pl.col("cycle") <= cycle).height
    return 4 * cycle + 1 + (evaluations if pair.sim.condition.tier == "exact" else 0)


def overtaken(pair: RunPair, cycle: int, late_s: float) -> Parted:
    """In the real run FIRST's update comes after SECOND's, `late_s` after its due."""
    one, two = ids(pair, cycle)
    edit = Edit(pair.real)
    edit.swap("accepted", one, two)

    def later(record: Line) -> None:
        start, due = record["interval_ns"]
        record["interval_ns"] = [start, due + round(late_s * 1e9)]

    def close(record: Line) -> None:
        places = {member["id"]: place for place, member in enumerate(record["cohort"])}
        if one in places:
            cohort, first, second = record["cohort"], places[one], places[two]
            cohort[first], cohort[second] = cohort[second], cohort[first]

    edit.each("accepted", later, is_id(one))
    edit.each("agg_round", close)
    edit.set("lateness", is_id(one), late_s=late_s)
    return pair, row_of(pair, cycle), f"update {two} of {SECOND}"


def race(folder: Path, cycle: int) -> Parted:
    """Two updates 2 ms apart change places, and lateness spreads over 4 ms."""
    pair = write_pair(folder, arriving(condition(delays={"values": (1.0, 1.502, 1.5, 2.5)})))
    return overtaken(pair, cycle, 0.0045)


def overrun(folder: Path, cycle: int) -> Parted:
    """FIRST computes longer than its D, and is overtaken."""
    parted = overtaken(write_pair(folder, arriving(condition())), cycle, 0.52)
    one, _ = ids(parted[0], cycle)
    phases = {"queue": 0.0, "compute": 2.02, "hold": 0.0}
    Edit(parted[0].real).set("trainer_round", is_id(one), overran=True, phases=phases)
    return parted


def lost(folder: Path, cycle: int, **changes: Any) -> Parted:
    """FIRST's update was sent, and nobody has it."""
    pair = write_pair(folder, arriving(condition(**changes)))
    one, two = ids(pair, cycle)
    for kind in ("accepted", "lateness"):
        Edit(pair.real).drop(kind, is_id(one))
    return pair, row_of(pair, cycle), f"update {two} of {SECOND}"


def lost_before_a_fault(folder: Path, cycle: int) -> Parted:
    """As `lost`, and a cycle later, when it had long been sent again, a worker was started again."""
    parted = lost(folder, cycle, limits={"resend_s": 0.5})
    Edit(parted[0].real).add(Fault("respawn", "w0", "exit code -9"), accepted_first(cycle + 1))
    return parted


def respawned(folder: Path, cycle: int) -> Parted:
    """FIRST's worker was started again meanwhile."""
    parted = overtaken(write_pair(folder, arriving(condition())), cycle, 0.52)
    Edit(parted[0].real).add(Fault("respawn", "w0", "exit code -9"), accepted_first(cycle))
    return parted


def two_held_up(folder: Path, cycle: int) -> Parted:
    """FIRST's worker was started again, and held up another one of its trainers for longer still."""
    parted = respawned(folder, cycle)
    pair = parted[0]
    rows = pair.sim.telemetry.frame("dispatch").filter(pl.col("cycle") == cycle).select("trainer", "id").rows()
    Edit(pair.real).set("lateness", is_id(dict(rows)["t3"]), late_s=25.0)
    return parted


def peer_lost(folder: Path, cycle: int) -> Parted:
    """FIRST is lost for good."""
    pair = write_pair(folder, condition())
    one, _ = ids(pair, cycle)
    Edit(pair.real).add(
        Intrusion(Progress(cycle=cycle), f"lost `{FIRST}`: its respawns are spent", [one]),
        accepted_first(cycle),
    )
    return pair, row_of(pair, cycle), "intrusion"


def another_result(folder: Path, cycle: int) -> Parted:
    """The same assign gives another loss."""
    pair = write_pair(folder, condition())
    one, _ = ids(pair, cycle)
    Edit(pair.real).set("accepted", is_id(one), loss=0.25)
    return pair, row_of(pair, cycle), f"update {one} of {FIRST}"


def out_of_order(folder: Path, cycle: int) -> Parted:
    """In stamp order, half a second apart, for no reason."""
    return overtaken(write_pair(folder, condition()), cycle, 0.0)


def unexplained(folder: Path, cycle: int) -> Parted:
    """In arrival order, half a second apart, though nothing was late: its stamps lie."""
    return overtaken(write_pair(folder, arriving(condition())), cycle, 0.0)


def accepted_first(cycle: int) -> Callable[[Line], bool]:
    """The first accept of a cycle."""
    return lambda record: record["kind"] == "accepted" and record["at"]["cycle"] == cycle


CAUSES: list[tuple[str, Callable[[Path, int], Any]]] = [
    ("RACE", race), ("OVERRUN", overrun), ("LOST", lost), ("LOST", lost_before_a_fault), ("FAULT", respawned), ("FAULT", two_held_up),
    ("FAULT", peer_lost), ("LOGIC", another_result), ("LOGIC", out_of_order), ("UNKNOWN", unexplained),
]  # fmt: skip
