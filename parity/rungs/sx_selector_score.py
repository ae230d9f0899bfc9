"""Sx: the scores by which trainers were chosen."""

import polars as pl

from parity.derived.pools import selections
from parity.evidence import Pair, Run, Window
from parity.measures.statistics import distance
from parity.rung import DIAG, LOGICAL, Finding, rung, skipped

COMPONENTS = ("score", "utility", "uncertainty", "penalty")


@rung(id="Sx", name="selector_score", stage=3, tier=DIAG, domain=LOGICAL, needs=["selection.scores"], upstream=["A2b"], over="cycles")
def selector_score(pair: Pair, window: Window) -> Finding:
    """The components of the scores of those who were chosen: which of them is the farthest apart.

    What it checks: nothing; where a guided selection parts it says in what: the utilities, the temporal uncertainty, or
        the penalty for slow devices.
    Why: a score is a product of things that come from different places; the one that parts names the place.
    Reads: selection.scores (score, utility, uncertainty, penalty).
    Statistic: the largest KS distance over the components, and which it is.
    Tolerance: none (DIAG).
    Known limits: of those who were chosen only. A policy that scores nobody has no scores: SKIP.
    """
    real, sim = (scores(run, window) for run in pair.runs)
    sides = {name: (real[name].drop_nulls(), sim[name].drop_nulls()) for name in COMPONENTS}
    found = {name: distance(one, two) for name, (one, two) in sides.items() if one.len() and two.len()}
    if not found:
        return skipped("one run has no score in the common cycles")
    worst = max(found, key=lambda name: found[name])
    return Finding(None, f"worst KS {found[worst]:.3f}, of the {worst}", effect=found[worst], n=min(real.height, sim.height))


def scores(run: Run, window: Window) -> pl.DataFrame:
    """A row per score in the common cycles: selection, trainer, how, score, utility, uncertainty, penalty."""
    frame = selections(run, window, "scores").select("scores").with_row_index("selection")
    return frame.explode("scores").drop_nulls("scores").unnest("scores")
