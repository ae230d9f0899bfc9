"""The explainer: where two runs first part, and why.

A rung that compares sequences says *that* they differ. This walks both released sequences to the first differing
row, or to the first effect that the same rows led to in one run alone; finds the first cycle that differs; asks the
witnesses of `parity.explainer.causes`; and names the command that shows the node at that step.
"""

from dataclasses import replace
from typing import Any

from parity.derived.released import Row, View, released
from parity.evidence import Pair, Run
from parity.explainer.causes import Case, broken, judge
from parity.explainer.parting import Parting, parting
from parity.explainer.story import Cohort, Member, Names, Place, Story
from parity.rungs.l1_cohort_sequence import ASPECTS, IN_TIME, parted_aspects

AGGREGATOR = "aggregator"

SEQUENCES = ("P0", "L1", "P1", "U5")
"""Rungs whose failure has a story."""

READ = (
    "abandoned", "accepted", "agg_eval", "agg_round", "dispatch", "fault", "intrusion", "lateness", "peer", "run_end", "run_meta",
    "task_send", "trainer_round",
)  # fmt: skip
"""Records that the witnesses look at, read in one pass."""


def explain(pair: Pair, *, logical: bool = False) -> Story | None:
    """The story of the first difference, None where there is none. logical: nothing of the clock is compared."""
    for run in pair.runs:
        run.dir.telemetry.load(*READ)
    view = View.of(pair, logical)
    sequences = released(pair, view)
    case = Case(pair, names_of(pair), view, sequences, parting(*sequences, view))
    differs = broken(case)
    cycle = _first_cycle(pair, view)
    if case.parting is None and differs is None and cycle is None:
        return None
    if case.parting is None and differs is None:
        return _without_rows(case, cycle or 0)
    cause, evidence = judge(case)
    told = _told(case, cycle, (*evidence, *(sequence.note for sequence in sequences if sequence.note)))
    if cause == "LOGIC" and differs is not None:
        run, _, node = differs
        return _pointing(told, run, node.node, node.step)
    return replace(told, cause=cause)


def names_of(pair: Pair) -> Names:
    """What to call the two runs."""
    kinds = (pair.real.dir.world.kind, pair.sim.dir.world.kind)
    return ("real", "sim") if kinds == ("real", "sim") else ("first", "second")


def _told(case: Case, cycle: int | None, evidence: tuple[str, ...]) -> Story:
    parted = case.parting or Parting(None, "row", None, None, (None, None))
    row = parted.real or parted.sim
    where = cycle if cycle is not None else row.cycle if row is not None else 0
    rows = [_place(row, step) for row, step in zip((parted.real, parted.sim), parted.step, strict=True)]
    story = Story(
        "LOGIC", where, _at(case.pair, where), _cohorts(case.pair, where), parted.index, rows[0], rows[1], evidence, AGGREGATOR, None, "",
        case.names,
    )  # fmt: skip
    return _pointing(story, case.pair.real, AGGREGATOR, parted.step[0])


def _without_rows(case: Case, cycle: int) -> Story:
    """The rows are equal as far as they are known, and a cycle isn't."""
    aspects = _differing_aspects(case.pair, case.view, cycle)
    notes = [sequence.note for sequence in case.sequences if sequence.note]
    return _told(case, cycle, (f"the same rows were released, and the cycle differs in: {', '.join(aspects)}", *notes))


def _pointing(story: Story, run: Run, node: str, step: int | None) -> Story:
    until = "" if step is None else f" --until {step} --print"
    return replace(story, node=node, step=step, command=f"flame replay {run.dir.path} --node {node}{until}")


def _place(row: Row | None, step: int | None) -> Place | None:
    return None if row is None else Place(str(row), step)


# ---- cycles


def _first_cycle(pair: Pair, view: View) -> int | None:
    """The first cycle that differs, or that one run alone has closed."""
    real, sim = (_cycles(run) for run in pair.runs)
    cycles = sorted(real.keys() | sim.keys())
    return next((cycle for cycle in cycles if _differing_aspects(pair, view, cycle)), None)


def _differing_aspects(pair: Pair, view: View, cycle: int) -> list[str]:
    names = [name for name in ASPECTS if not (view.logical and name in IN_TIME)]
    real, sim = (_cycles(run).get(cycle) for run in pair.runs)
    return parted_aspects(real, sim, names)


def _cycles(run: Run) -> dict[int, dict[str, Any]]:
    return run.derived(_by_number)


def _by_number(run: Run) -> dict[int, dict[str, Any]]:
    return {row["cycle"]: row for row in run.rounds.iter_rows(named=True)}


def _at(pair: Pair, cycle: int) -> tuple[int, int, int] | None:
    row = next((found for run in pair.runs if (found := _cycles(run).get(cycle))), None)
    return None if row is None else (row["round"], row["data_id"], row["iteration"])


def _cohorts(pair: Pair, cycle: int) -> tuple[Cohort, Cohort]:
    real, sim = (_cohort(_cycles(run).get(cycle)) for run in pair.runs)
    return real, sim


def _cohort(row: dict[str, Any] | None) -> Cohort:
    if row is None:
        return Cohort((), None)
    members = (Member(each["trainer"], each["id"], each["dispatched_ns"], each["stamp_ns"]) for each in row["cohort"])
    return Cohort(tuple(members), row["stamp_ns"])
