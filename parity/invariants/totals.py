"""What a run has rolled up (totals, means, rates), against the flat records of which it was made."""

from collections.abc import Iterator
from math import isclose

import polars as pl

from parity.evidence import Run
from parity.single import Look

EQUAL = 1e-9


def counts(run: Run) -> Look:
    """Running totals of the closes are the accepts and rejects that were written."""
    frame = run.frame("accepted")
    seqs = {taken: frame.filter(pl.col("accepted") == taken)["_seq"].sort() for taken in (True, False)}
    faults, rounds = [], run.rounds.select("cycle", "_seq", "accepts", "rejects")
    for cycle, seq, accepts, rejects in rounds.iter_rows():
        seen = tuple(int(seqs[taken].search_sorted(seq)) for taken in (True, False))
        if seen != (accepts, rejects):
            faults.append(f"cycle {cycle} counts {accepts} accepts and {rejects} rejects, {seen[0]} and {seen[1]} were written")
    return Look(frame.height, faults)


def rolled_up(run: Run) -> Look:
    """Rolled-up numbers are those of the flat records, to 1e-9: means of a cohort, totals of the run, passes of a trainer, its rate."""
    faults = [*_cohorts(run), *_ended(run), *_passes(run), *_rate(run)]
    return Look(run.rounds.height, faults)


def _cohorts(run: Run) -> Iterator[str]:
    """A close's mean staleness and weight, and how many were gated, against the accepts of its members."""
    flat = run.frame("accepted").filter(pl.col("accepted")).unique("id").select("id", "gated", one="staleness", two="rate")
    members = run.rounds.select("cycle", "cohort", of="gated").explode("cohort").unnest("cohort").drop_nulls("id")
    both = members.join(flat, on="id", suffix="_flat", maintain_order="left")
    means = both.group_by("cycle", maintain_order=True).agg(
        pl.col("staleness", "one", "rate", "two").mean(), pl.col("gated").sum(), pl.col("of").first()
    )
    for cycle, age, flat_age, rate, flat_rate, gated, told in means.iter_rows():
        for name, up, down in (("staleness", age, flat_age), ("rate", rate, flat_rate), ("gated", told, gated)):
            if not _equal(up, down):
                yield f"cycle {cycle} has {name} {up}, its accepts {down}"


def _ended(run: Run) -> Iterator[str]:
    """Totals of run_end and of the verdict, against what was written."""
    taken = run.frame("accepted")["accepted"]
    written = {"accepts": int(taken.sum()), "rejects": int((~taken).sum())} if run.level == "full" else {}
    for row in run.frame("run_end").iter_rows(named=True):
        yield from (f"run_end counts {row[name]} {name}, {n} were written" for name, n in written.items() if row[name] != n)
    verdict, commits = run.verdict, int(run.rounds["committed"].sum())
    if verdict is None:
        return
    if written and verdict.accepts is not None and verdict.accepts != written["accepts"]:
        yield f"the verdict counts {verdict.accepts} accepts, {written['accepts']} were written"
    if verdict.commits != commits:
        yield f"the verdict counts {verdict.commits} commits, {commits} were written"


def _passes(run: Run) -> Iterator[str]:
    """Each trainer's cumulative passes, in each of its lives."""
    life = ("trainer", "_incarnation")
    rounds = run.frame("trainer_round").sort("_seq").select("id", *life, "passes_total", flat=pl.col("passes").cum_sum().over(life))
    wrong = rounds.filter(pl.col("passes_total") != pl.col("flat"))
    yield from (f"`{name}` counts {total} passes with id {key}, its jobs took {flat}" for key, name, _, total, flat in wrong.iter_rows())


def _rate(run: Run) -> Iterator[str]:
    verdict = run.verdict
    if verdict is not None and verdict.sim_rate is not None and verdict.wall_s > 0:
        rate = verdict.virtual_s / verdict.wall_s
        if not _equal(verdict.sim_rate, rate):
            yield f"the verdict's sim_rate is {verdict.sim_rate}, its times give {rate}"


def _equal(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return isclose(one, other, rel_tol=EQUAL, abs_tol=EQUAL)
