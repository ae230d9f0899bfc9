"""W1: no more is computed than is used."""

import polars as pl

from parity.evidence import Pair, Run, Window
from parity.rung import DIST, LOGICAL, Finding, failed, passed, rung, skipped

TOL = 0.25


@rung(
    id="W1",
    name="w1_compute_conservation",
    stage=3,
    tier=DIST,
    domain=LOGICAL,
    needs=["trainer_round.id", "dispatch.due_ns", "agg_round.cohort", "agg_round.stamp_ns"],
    upstream=["R1"],
    over="cycles",
)
def w1_compute_conservation(pair: Pair, window: Window) -> Finding:
    """The sim computes no more per accepted update than the real run does.

    What it checks: finished jobs that were due before the last common close, over the members of the common cycles.
    Why: at the aggregation goal the surplus of an async run was dropped in the reference system: 228 computes for the 82 of
        its twin, in a run whose rounds looked equal.
    Reads: trainer_round.id, dispatch.due_ns, agg_round.cohort, agg_round.stamp_ns.
    Statistic: computes per accept, sim over real; exact: equal numbers. Facts: no sampling.
    Tolerance: exact 0; fidelity: at most 1.25, one-sided.
    Known limits: a job that a respawned worker does once more counts once, and is shown: the real run lost the first.
    """
    real, sim = (_computes(run, window) for run in pair.runs)
    if not all(min(computes, accepts) for computes, accepts, _ in (real, sim)):
        return skipped("one run has no compute or no accept in the common cycles")
    told = [f"{side} {computes} for {accepts} accepts" for side, (computes, accepts, _) in (("real", real), ("sim", sim))]
    again = f"; {real[2] + sim[2]} done again by a new incarnation" if real[2] + sim[2] else ""
    effect = (sim[0] / sim[1]) / (real[0] / real[1]) - 1
    wrong = real[:2] != sim[:2] if pair.exact else effect > TOL
    judge, tolerance = (failed if wrong else passed), 0.0 if pair.exact else TOL
    return judge(f"{', '.join(told)}{again}", effect=effect, tol=tolerance, n=min(real[0], sim[0]))


def _computes(run: Run, window: Window) -> tuple[int, int, int]:
    """(computes, accepts, jobs that a later incarnation did again)."""
    rounds = window.in_cycles(run.rounds)
    last = rounds["stamp_ns"].max()
    due = run.frame("dispatch", "id", "due_ns").filter(pl.col("due_ns") < last).select("id").unique()
    jobs = run.frame("trainer_round", "id", "_incarnation").join(due, on="id", how="semi").group_by("id", "_incarnation").len()
    each = jobs.group_by("id").agg(pl.col("len").max(), again=pl.len() - 1)
    return int(each["len"].sum()), int(rounds["cohort"].list.len().sum()), int(each["again"].sum())
