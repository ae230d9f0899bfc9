"""K8: both runs are equally far at the end."""

import polars as pl

from parity.evidence import Pair, Window
from parity.rung import DIST, LOGICAL, Finding, rung
from parity.rungs.common_instant import compare_at_common_instant


@rung(
    id="K8",
    name="terminal_state",
    stage=8,
    tier=DIST,
    domain=LOGICAL,
    needs=["agg_round.cohort", "agg_round.stamp_ns"],
    upstream=["K2", "S2", "L1"],
    over="cycles",
)
def terminal_state(pair: Pair, window: Window) -> Finding:
    """At the last instant that both reached, as many cycles and bins are done, by as many trainers.

    What it checks: closed cycles, committed bins and different contributors up to the common stamp (exact) or to the
        common instant of the clock (fidelity).
    Why: runs of one budget that got differently far can't be compared by what they learnt.
    Reads: agg_round.cohort, committed, stamp_ns and clock.
    Statistic: equality (exact); the largest relative difference, of which one event is forgiven, block permutation over the
        closes (fidelity).
    Tolerance: exact 0; fidelity 0.05.
    Known limits: a single instant. How many trainers took part is a fact: no sampling.
    """
    return compare_at_common_instant(pair, window, _progress)


def _progress(rounds: pl.DataFrame) -> dict[str, int]:
    trainers = rounds["cohort"].explode().struct.field("trainer").n_unique() if rounds.height else 0
    return {"cycles": rounds.height, "bins": int(rounds["committed"].sum()), "trainers": trainers}
