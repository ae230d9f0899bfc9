"""U2: as much was taken and committed in all."""

import polars as pl

from parity.evidence import Pair, Window
from parity.rung import DIST, LOGICAL, Finding, rung
from parity.rungs.common_instant import compare_at_common_instant


@rung(
    id="U2",
    name="total_commits",
    stage=8,
    tier=DIST,
    domain=LOGICAL,
    needs=["agg_round.accepts", "agg_round.rejects", "agg_round.committed", "agg_round.stamp_ns"],
    upstream=["K2", "L1"],
    over="cycles",
)
def total_commits(pair: Pair, window: Window) -> Finding:
    """At the last instant that both reached, as many updates were accepted and refused, and as many commits made.

    What it checks: the running totals of the last close up to the common stamp (exact) or to the common instant of
        the clock (fidelity), and the commits up to there.
    Why: forward passes, bytes and time are all paid per update; totals that differ make every such figure differ.
    Reads: agg_round.accepts, rejects, committed, stamp_ns and clock.
    Statistic: equality (exact); the largest relative difference, of which one event is forgiven, block permutation over the
        closes (fidelity).
    Tolerance: exact 0; fidelity 0.05.
    Known limits: that a total is the sum of what was written is an invariant of each run (`counts`).
    """
    return compare_at_common_instant(pair, window, _totals)


def _totals(rounds: pl.DataFrame) -> dict[str, int]:
    accepts, rejects = (int(rounds[name][-1]) if rounds.height else 0 for name in ("accepts", "rejects"))
    return {"accepts": accepts, "rejects": rejects, "commits": int(rounds["committed"].sum())}
