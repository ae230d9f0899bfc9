"""A2: as many trainers are there, and as many could be chosen."""

from parity.derived.pools import selections
from parity.evidence import Pair, Window
from parity.measures.statistics import ks
from parity.measures.tables import equal_rows, in_order
from parity.rung import DIST, LOGICAL, Finding, measured, rung

TOL = 0.2
COLUMNS = ("candidates", "eligible")


@rung(
    id="A2",
    name="eligibility",
    stage=2,
    tier=DIST,
    domain=LOGICAL,
    needs=["selection.candidates", "selection.eligible"],
    upstream=["A1"],
    over="cycles",
)
def eligibility(pair: Pair, window: Window) -> Finding:
    """At each selection the population and the pool to choose from have the same size.

    What it checks: candidates (who has joined) and eligible (who is free and believed available) of each selection.
    Why: a selector is only as equal as what it may choose from.
    Reads: selection.candidates, selection.eligible.
    Statistic: equality, selection by selection (exact); KS of each (fidelity).
    Tolerance: exact 0; fidelity 0.2.
    Known limits: sizes, not names; A2b has the speed of those in the pool, S34 the fingerprint.
    """
    real, sim = (selections(run, window, *COLUMNS) for run in pair.runs)
    if pair.exact:
        return equal_rows("selections", "selection {number} (cycle {cycle})", in_order(real), in_order(sim))
    return measured(*(ks(real[name], sim[name], TOL, name=f"KS of {name}") for name in COLUMNS))
