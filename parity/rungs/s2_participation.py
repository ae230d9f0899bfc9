"""S2: fast and slow trainers contribute as much."""

from collections.abc import Mapping

import polars as pl

from parity.derived.pools import durations
from parity.evidence import Pair, Run, Window
from parity.measures.statistics import variation
from parity.measures.tables import equal_rows
from parity.rung import DIST, LOGICAL, Finding, measured, rung, skipped

TOL = 0.15
CLASSES = 3


@rung(
    id="S2",
    name="participation",
    stage=3,
    tier=DIST,
    domain=LOGICAL,
    needs=["agg_round.cohort"],
    upstream=["S34", "A2c"],
    over="cycles",
)
def participation(pair: Pair, window: Window) -> Finding:
    """The share of accepted updates that come from each third of the population, by speed, agrees.

    What it checks: the members of the common cycles, by the modelled D of their trainers.
    Why: whose data shape the model is decided here. A sim that prefers the fast, because it waits for nobody, learns from
        other people.
    Reads: agg_round.cohort; the devices of the condition.
    Statistic: equality of each trainer's number of updates (exact); total variation distance between the shares of the fast,
        the middle and the slow third, block permutation (fidelity).
    Tolerance: exact 0; fidelity 0.15.
    Known limits: equal durations fall into one class, so there may be fewer than three.
    """
    real, sim = (_contributors(run, window) for run in pair.runs)
    if pair.exact:
        return equal_rows("trainers", "{trainer}", *(side.value_counts().sort("trainer") for side in (real, sim)))
    classes = speed_classes(pair.real.derived(durations))
    one, two = (side.replace_strict(classes, default=None, return_dtype=pl.Int64).drop_nulls() for side in (real, sim))
    if not one.len() or not two.len():
        return skipped("one run has no contributor in the common cycles")
    return measured(variation(one, two, TOL, name="TVD of speed classes"))


def speed_classes(delays: Mapping[str, float]) -> dict[str, int]:
    """Node -> 0 for the fast third, 1, 2; who is as fast as another is in its class."""
    ranks = {delay: rank for rank, delay in reversed(list(enumerate(sorted(delays.values()))))}
    return {node: ranks[delay] * CLASSES // len(delays) for node, delay in delays.items()}


def _contributors(run: Run, window: Window) -> pl.Series:
    """The members of the common cycles, in commit order."""
    return window.in_cycles(run.members)["trainer"]
