"""A4dur: each trainer was in each state for the same share of the time."""

from statistics import fmean

import numpy as np

from parity.derived.presence import time_in_state, total_variation, unwatched
from parity.evidence import Pair, Window
from parity.measures.compare import equal
from parity.measures.pace import of_span
from parity.rung import DIST, LOGICAL, Finding, measured, rung, skipped

TOL = 0.05
EACH, OF_ALL = 0.10, 0.95


@rung(
    id="A4dur",
    name="duty_cycle_duration",
    stage=2,
    tier=DIST,
    domain=LOGICAL,
    needs=["agg_round.stamp_ns"],
    upstream=["A4"],
    over="cycles",
)
def duty_cycle_duration(pair: Pair, window: Window) -> Finding:
    """The time that each trainer spent in each of the three states agrees.

    What it checks: as A4, but all states, and their total variation distance per trainer.
    Why: who can evaluate only isn't away, and isn't there either; A4 can't tell these from one another.
    Reads: agg_round.stamp_ns; the traces of the condition.
    Statistic: equality (exact); total variation distance of the shares of time: its mean over trainers, and what 95 % of
        them are within; chance as in A4 (fidelity).
    Tolerance: exact 0; fidelity: mean 0.05, and 95 % of the trainers within 0.10.
    Known limits: those of A4.
    """
    nothing = unwatched(pair)
    if nothing:
        return skipped(nothing)
    real, sim = (time_in_state(run, window) for run in pair.runs)
    if pair.exact:
        return equal("trainers", real, sim)
    distances = [total_variation(real[node], sim[node]) for node in real]
    most = float(np.quantile(distances, OF_ALL, method="inverted_cdf"))
    return measured(
        of_span(pair, window, fmean(distances), TOL, "mean distance"), of_span(pair, window, most, EACH, f"distance of {OF_ALL:.0%}")
    )
