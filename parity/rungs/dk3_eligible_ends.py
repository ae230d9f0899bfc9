"""DK3: each cycle opens with as many trainers to choose from."""

import polars as pl

from parity.derived.pools import selections
from parity.evidence import Pair, Run, Window
from parity.measures.statistics import ks
from parity.measures.tables import equal_rows
from parity.rung import DIST, LOGICAL, Finding, measured, rung

TOL = 0.2


@rung(id="DK3", name="eligible_ends", stage=3, tier=DIST, domain=LOGICAL, needs=["selection.eligible"], upstream=["A1"], over="cycles")
def eligible_ends(pair: Pair, window: Window) -> Finding:
    """The pool at the first selection of each cycle, where K and C are sampled, has the same size.

    What it checks: eligible trainers at the first selection of each common cycle.
    Why: a controller that sets K and C by how many could take part decides by this number, once a cycle.
    Reads: selection.eligible.
    Statistic: equality, cycle by cycle (exact); KS (fidelity).
    Tolerance: exact 0; fidelity 0.2.
    Known limits: `var_tracking` looks at uploads and not at the pool, so here it is what a controller would see. A cycle
        in which nothing was selected has none.
    """
    real, sim = (_at_opening(run, window) for run in pair.runs)
    if pair.exact:
        return equal_rows("cycles", "cycle {cycle}", real, sim)
    return measured(ks(real["eligible"], sim["eligible"], TOL))


def _at_opening(run: Run, window: Window) -> pl.DataFrame:
    return selections(run, window, "eligible").unique("cycle", keep="first", maintain_order=True).select("cycle", "eligible")
