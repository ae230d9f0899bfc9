"""V4: as many commits are forced, and for the same reasons."""

import polars as pl

from parity.evidence import Pair, Run, Window
from parity.measures.statistics import mean
from parity.measures.tables import equal_rows, in_order
from parity.rung import DIST, LOGICAL, Finding, measured, rung

UNFORCED = ("natural", "pool_size", "n_eff", "goal")


@rung(
    id="V4",
    name="force_commit_rate",
    stage=6,
    tier=DIST,
    domain=LOGICAL,
    needs=["agg_round.reason", "agg_round.committed"],
    upstream=["V1"],
    over="bins",
)
def force_commit_rate(pair: Pair, window: Window) -> Finding:
    """The share of commits that a cap or a plateau forced agrees, and so does the share of each reason.

    What it checks: the reason of each commit over the bins that both runs completed.
    Why: a gate that never opens by itself is a cap with extra steps; the two worlds must agree on which it is.
    Reads: agg_round.reason, agg_round.committed.
    Statistic: equality, bin by bin (exact); difference of the shares over aligned bins (fidelity).
    Tolerance: exact 0; fidelity 0.05 for the forced share and for each reason.
    Known limits: none.
    """
    real, sim = (_reasons(run, window) for run in pair.runs)
    if pair.exact:
        return equal_rows("commits", "commit of bin {number}", in_order(real.to_frame()), in_order(sim.to_frame()))
    shares = {f"share of {reason}": (reason,) for reason in sorted({*real, *sim})}
    forced = tuple(reason for reason in {*real, *sim} if reason not in UNFORCED)
    return measured(
        *(
            mean(real.is_in(those), sim.is_in(those), 0.05, name=name, aligned=True)
            for name, those in ({"forced share": forced} | shares).items()
        )
    )


def _reasons(run: Run, window: Window) -> pl.Series:
    """Of each commit, in order."""
    return window.in_bins(run, run.rounds).filter("committed")["reason"]
