"""How pairs are broken for the rungs of stages 1 to 5: a condition under which each judges, and what is done to it."""

from collections.abc import Callable
from dataclasses import dataclass
from shutil import rmtree
from typing import Any

from flame.config import Condition
from flame.telemetry.rundir import RunPair
from tests.parity.edits import Edit, Line, cycle_is
from tests.parity.fixtures import asynchronous, away, condition, fidelity, guided, write_run

Spoil = Callable[[RunPair], None]
Made = Callable[[], Condition]


@dataclass(frozen=True)
class Case:
    """broken: how a good pair is spoiled. made: its condition. differs: how one of the fidelity tier is, if not likewise."""

    broken: Spoil
    made: Made = condition
    differs: Spoil | None = None
    arriving: Made = lambda: fidelity(150)


def _in_sim(kind: str, change: Callable[[Line], Any], where: Callable[[Line], bool] = lambda record: True) -> Spoil:
    return lambda pair: Edit(pair.sim).each(kind, change, where)


def _in_real(kind: str, change: Callable[[Line], Any], where: Callable[[Line], bool] = lambda record: True) -> Spoil:
    return lambda pair: Edit(pair.real).each(kind, change, where)


def slower_clock(pair: RunPair) -> None:
    """The virtual clock moves half as far again in each cycle."""
    Edit(pair.sim).each("agg_round", lambda record: record.update(vclock_ns=record["vclock_ns"] * 3 // 2))


def crawling_clock(pair: RunPair) -> None:
    """It moves three times as far: cycles seem to wait for something."""
    Edit(pair.sim).each("agg_round", lambda record: record.update(vclock_ns=record["vclock_ns"] * 3))


def uneven_clock(pair: RunPair) -> None:
    """Cycles of 1 s and of 4 s in turn, for cycles of 2.5 s."""
    edit = Edit(pair.sim)
    edit.each("agg_round", lambda record: record.update(vclock_ns=record["vclock_ns"] - 1_500_000_000 * (record["at"]["cycle"] % 2 == 0)))


def later(pair: RunPair) -> None:
    """Stamps of the closes are twice as late: by then others are there."""
    Edit(pair.sim).each("agg_round", lambda record: record.update(stamp_ns=record["stamp_ns"] * 2))


def a_nanosecond_longer(pair: RunPair) -> None:
    """The last close, and with it the time that is looked at."""
    Edit(pair.sim).each("agg_round", lambda record: record.update(stamp_ns=record["stamp_ns"] + 1), cycle_is(39))


def at_once(pair: RunPair) -> None:
    """Everything has closed before anybody went or came back."""
    Edit(pair.sim).each("agg_round", lambda record: record.update(stamp_ns=record["stamp_ns"] // 500))


def fewer_eligible(pair: RunPair) -> None:
    Edit(pair.sim).each("selection", lambda record: record.update(eligible=record["eligible"] // 2))


def unwithheld(pair: RunPair) -> None:
    """An absence that nobody noticed."""
    Edit(pair.sim).drop("withheld")


def chosen_away(pair: RunPair) -> None:
    """A pool that is not who is there."""
    Edit(pair.sim).set("selection", cycle_is(7), eligible_fp="0" * 16)


def believed_all(pair: RunPair) -> None:
    Edit(pair.sim).each("selection", lambda record: record.update(eligible=record["candidates"]))


def sent_early(pair: RunPair) -> None:
    """Every answer, ten seconds before its trainer is back."""

    def change(lines: list[Line]) -> list[Line]:
        for line in lines:
            if line["record"]["kind"] == "task_send":
                line["t_ns"] -= 10_000_000_000
        return lines

    Edit(pair.real).lines(change)


def _fast_first(record: Line) -> None:
    record.update(chosen=["t0"] * len(record["chosen"]))


def fast_finish(record: Line) -> None:
    for member in record["cohort"]:
        member["trainer"] = "t0"


def _swap_first(record: Line) -> None:
    cohort = record["cohort"]
    cohort[0], cohort[1] = cohort[1], cohort[0]


def biased(pair: RunPair) -> None:
    """A sim whose selector prefers the fast: who is left to choose from is slow."""
    rmtree(pair.sim.path)
    run = pair.sim
    noise = None if run.condition.tier == "exact" else 1
    write_run(run.path.parent, run.condition, "sim", noise=noise, fast_first=True)


def slower_phases(record: Line) -> None:
    record.update(phases=record["phases"] | {"compute": 5.0})


def taking(phase: str, seconds: float) -> Callable[[Line], None]:
    """A phase of every job takes so long."""
    return lambda record: record.update(phases=record["phases"] | {phase: seconds})


def unclosed(record: Line) -> None:
    record.update(phases=record["phases"] | {"hold": record["phases"]["hold"] / 2})


def computed_again(pair: RunPair) -> None:
    Edit(pair.sim).repeat("trainer_round", lambda record: record["id"] % 2 == 0)


def _async_fidelity() -> Condition:
    return fidelity(150, loop="async", trainers=6, goal=3, concurrency=5, commit=["agg_goal"])


def _guided_fidelity() -> Condition:
    return guided(150, commit_order="arrival", pacing="relative")


def _away_fidelity() -> Condition:
    return away(150, commit_order="arrival", pacing="relative")


EARLY: dict[str, Case] = {
    "K3a": Case(slower_clock),
    "K3b": Case(slower_clock),
    "K4": Case(crawling_clock),
    "K3": Case(uneven_clock, lambda: condition(stop={"cycles": 60})),
    "K2": Case(slower_clock, lambda: condition(stop={"cycles": 40})),
    "Wd": Case(lambda pair: Edit(pair.real).forget("agg_round", "lag_s")),
    "A1": Case(later, away, later, _away_fidelity),
    "A2": Case(fewer_eligible, condition, fewer_eligible),
    "A2b": Case(biased, asynchronous, biased, _async_fidelity),
    "A3": Case(fewer_eligible, away, fewer_eligible, _away_fidelity),
    "A4": Case(a_nanosecond_longer, away, at_once, _away_fidelity),
    "A4dur": Case(a_nanosecond_longer, away, at_once, _away_fidelity),
    "A5": Case(later, away, later, _away_fidelity),
    "A6": Case(unwithheld, away),
    "A7": Case(chosen_away, away, believed_all, _away_fidelity),
    "A8": Case(sent_early, away),
    "Aa": Case(lambda pair: Edit(pair.real).forget("selection", "eligible")),
    "C3": Case(_in_sim("abandoned", lambda record: record.update(age_ns=record["age_ns"] * 30)), away),
    "F": Case(lambda pair: Edit(pair.real).forget("agg_round", "stamp_ns")),
    "Sr": Case(
        _in_sim("agg_round", lambda record: record.update(in_flight=0), cycle_is(5)), asynchronous,
        _in_sim("agg_round", lambda record: record.update(in_flight=0)), _async_fidelity,
    ),
    "A2c": Case(_in_sim("selection", _fast_first, cycle_is(2)), condition, _in_sim("selection", _fast_first)),
    "Sx": Case(lambda pair: Edit(pair.real).forget("selection", "scores"), guided),
    "Sd": Case(
        _in_sim("selection", lambda record: record["scores"][0].update(penalty=0.1), cycle_is(0)), guided,
        _in_sim("selection", lambda record: [score.update(penalty=1.0) for score in record["scores"]]), _guided_fidelity,
    ),
    "Sdet": Case(
        _in_sim("selection", lambda record: record["chosen"].reverse(), cycle_is(3)), lambda: condition(select="all"),
        _in_sim("selection", lambda record: record["chosen"].reverse(), cycle_is(3)), lambda: fidelity(20, select="all"),
    ),
    "S1": Case(
        _in_sim("selection", lambda record: record.update(chosen=["t0", "t1", "t2", "t2"]), cycle_is(3)), condition,
        _in_sim("selection", lambda record: record.update(chosen=["t0"])),
    ),
    "S2": Case(_in_sim("agg_round", fast_finish, cycle_is(4)), asynchronous, _in_sim("agg_round", fast_finish), _async_fidelity),
    "W1": Case(computed_again, condition, computed_again),
    "DK3": Case(fewer_eligible, condition, fewer_eligible),
    "T2": Case(_in_sim("trainer_round", slower_phases)),
    "Tph": Case(_in_sim("trainer_round", taking("encode", 0.01), lambda record: record["id"] % 3 > 0)),
    "Tcl": Case(_in_real("trainer_round", unclosed)),
    "T3": Case(_in_real("trainer_round", slower_phases)),
    "U5": Case(_in_sim("agg_round", _swap_first, cycle_is(5)), condition, _in_sim("agg_round", lambda record: record["cohort"].reverse())),
}  # fmt: skip
"""Rung -> its case."""
