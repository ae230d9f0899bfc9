"""How pairs are broken for the rungs of sequence, learning, outcome and budget (stages 6 to 9), one thing at a time."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from flame.core.time import SECOND
from flame.telemetry.rundir import RunPair
from tests.parity.edits import Edit, Line, cycle_is
from tests.parity.fixtures import condition, write_pair

Spoil = Callable[[RunPair], None]


def away(folder: Path) -> RunPair:
    """A pair whose trainers are away half of the time, for two seconds or more, and don't say so before."""
    return write_pair(folder, condition(availability={"trace": "syn_50", "time_scale": 300.0}))


GROUNDS: dict[str, Callable[[Path], RunPair]] = {"C2w": away, "K11": away}
"""Rungs that have nothing to look at in the good pair -> the pair that they are tried on."""


def both(pair: RunPair, change: Callable[[Edit], None]) -> None:
    """The same in real and sim."""
    for run in (pair.real, pair.sim):
        change(Edit(run))


def _first_withheld(pair: RunPair) -> int:
    return int(pair.real.telemetry.frame("withheld")["id"][0])


def fresh_though_withheld(pair: RunPair) -> None:
    """Withheld updates are said to be as old as they aren't, in both runs."""
    number = _first_withheld(pair)
    both(pair, lambda edit: edit.set("accepted", lambda record: record["id"] == number, staleness=3.0))


def counts_late(pair: RunPair) -> None:
    """A withheld update counts a nanosecond after its trainer is back, wherever it is spoken of, in both runs."""
    number = _first_withheld(pair)
    due = int(pair.real.telemetry.frame("withheld")["due_ns"][0]) + 1

    def accept(record: Line) -> None:
        record.update(due_ns=due, interval_ns=[record["interval_ns"][0], due])

    def close(record: Line) -> None:
        for member in record["cohort"]:
            if member["id"] == number:
                member.update(stamp_ns=due)

    def change(edit: Edit) -> None:
        for kind in ("withheld", "dispatch"):
            edit.set(kind, lambda record: record["id"] == number, due_ns=due)
        edit.set("task_send", lambda record: record["id"] == number, stamp_ns=due)
        edit.each("accepted", accept, lambda record: record["id"] == number)
        edit.each("agg_round", close)

    both(pair, change)


def put_off(pair: RunPair) -> None:
    """A withheld update came 45 s before it was taken."""
    number = _first_withheld(pair)
    Edit(pair.real).set("lateness", lambda record: record["id"] == number, late_s=-45.0)


def half_as_fast(pair: RunPair) -> None:
    """The sim's clock shows twice the time."""

    def stretch(lines: list[Line]) -> list[Line]:
        return [line | {"t_ns": 2 * line["t_ns"]} for line in lines]

    Edit(pair.sim).lines(stretch)


def slow_evaluations(pair: RunPair) -> None:
    Edit(pair.real).each("agg_eval", lambda record: record.update(stamp_ns=record["stamp_ns"] - 5 * SECOND))


def somebody_else(pair: RunPair) -> None:
    Edit(pair.sim).each("agg_round", lambda record: record["cohort"][0].update(trainer="t9"), cycle_is(4))


def growing_bins(pair: RunPair) -> None:
    """The later a bin, the more of the sim's commits are keeps."""

    def keep(record: Line) -> bool:
        data_id = record["at"]["data_id"]
        return bool(record["committed"]) and data_id > 30 and data_id % (3 if data_id > 60 else 2) != 0

    Edit(pair.sim).set("agg_round", keep, committed=False, reason="keep")


def _add(kind: str, name: str, amount: float, where: Callable[[Line], bool] = lambda record: True) -> Spoil:
    """Add to a field of the sim's records."""
    return lambda pair: Edit(pair.sim).each(kind, lambda record: record.update({name: record[name] + amount}), where)


def _set(kind: str, where: Callable[[Line], bool] = lambda record: True, **values: Any) -> Spoil:
    return lambda pair: Edit(pair.sim).set(kind, where, **values)


def _id_is(number: int) -> Callable[[Line], bool]:
    return lambda record: bool(record["id"] == number)


def _commits(record: Line) -> bool:
    return bool(record["committed"])


def _odd(record: Line) -> bool:
    return bool(record["at"]["cycle"] % 2)


def _budgeted(pair: RunPair) -> None:
    both(pair, lambda edit: edit.stored(lambda stored: stored["condition"]["stop"].update(runtime_s=1000.0)))


BROKEN: dict[str, Spoil] = {
    "U6": lambda pair: Edit(pair.real).set("lateness", late_s=-3.0),
    "U6e": slow_evaluations,
    "P1": somebody_else,
    "U3": _set("accepted", _id_is(9), staleness=1.0),
    "C2w": fresh_though_withheld,
    "K11": put_off,
    "V1c": lambda pair: Edit(pair.sim).set("agg_round", cycle_is(5), committed=False, reason="keep"),
    "V2b": _add("agg_round", "variance", 0.1),
    "V3": _set("agg_round", pool=40),
    "V5": lambda pair: Edit(pair.sim).set("agg_round", lambda record: record["reason"] == "natural", reason="keep"),
    "DK1": _set("agg_round", cycle_is(4), goal=3),
    "DK2": _set("agg_round", cycle_is(4), concurrency=5),
    "F13": _set("accepted", _id_is(9), utility=7.5),
    "G1": _set("agg_round", _commits, grad_norm=1.5),
    "G2": _add("agg_round", "pool", 1, _commits),
    "G3": _set("accepted", _id_is(9), gated=True),
    "K8": _set("agg_round", cycle_is(10), stamp_ns=10**13),
    "U2": _add("agg_round", "accepts", 1),
    "K9": _budgeted,
}
"""Rung -> how a pair of the exact tier is broken for it."""

STATISTICAL: dict[str, Spoil] = {
    "P1": somebody_else,
    "U3": _add("accepted", "staleness", 2),
    "V1c": growing_bins,
    "V5": lambda pair: Edit(pair.sim).set("agg_round", lambda record: record["reason"] == "keep" and _odd(record), reason="natural"),
    "DK1": _set("agg_round", _odd, goal=3),
    "DK2": _set("agg_round", _odd, concurrency=3),
    "F13": _add("accepted", "utility", 1.0),
    "G1": _set("agg_round", _commits, grad_norm=1.5),
    "G2": _add("agg_round", "pool", 2, _commits),
    "G3": _set("accepted", lambda record: record["id"] % 2, rate=0.5),
    "K8": half_as_fast,
    "U2": half_as_fast,
}
"""LOGICAL DIST rung -> how a pair of the fidelity tier is broken for it."""

DIAGNOSTIC = ("V2b", "V3", "K9")

MUTATIONS: dict[str, tuple[str, Spoil]] = {
    "updates lie about at the aggregator": ("U6", lambda pair: Edit(pair.real).set("lateness", late_s=-3.0)),
    "evaluations hold the run up": ("U6e", slow_evaluations),
    "an update is older in the sim": ("U3", _set("accepted", _id_is(9), staleness=1.0)),
    "an age is negative": ("U3", lambda pair: both(pair, lambda edit: edit.set("accepted", _id_is(9), staleness=-1.0))),
    "a trainer reports another utility": ("F13", _set("accepted", _id_is(9), utility=7.5)),
    "a step has another length": ("G1", _set("agg_round", cycle_is(5), grad_norm=1.0001)),
    "a commit averaged one upload more": ("G2", _add("agg_round", "pool", 1, _commits)),
    "a weight differs": ("G3", _set("accepted", _id_is(9), rate=0.5)),
    "the gate lowered a weight in one run": ("G3", _set("accepted", _id_is(9), gated=True)),
    "a total is one more": ("U2", _add("agg_round", "accepts", 1, cycle_is(11))),
}
"""What is done to a good pair -> the rung that is the root cause."""

AWAY_MUTATIONS: dict[str, tuple[str, Spoil]] = {
    "a withheld update has another age": ("C2w", fresh_though_withheld),
    "a withheld update counts after its trainer is back": ("A6", counts_late),
    "a withheld update is put off": ("K11", put_off),
}
"""The same, to a pair whose trainers are away at times."""
