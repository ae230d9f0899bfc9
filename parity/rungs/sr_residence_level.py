"""Sr: as many slots stay held after a close."""

from parity.evidence import Pair, Window
from parity.measures.statistics import mean
from parity.measures.tables import equal_rows
from parity.rung import DIST, LOGICAL, Finding, measured, rung

TOL = 0.3


@rung(id="Sr", name="residence_level", stage=3, tier=DIST, domain=LOGICAL, needs=["agg_round.in_flight"], upstream=["S34"], over="cycles")
def residence_level(pair: Pair, window: Window) -> Finding:
    """The number of slots that are held once a close has freed its own agrees.

    What it checks: agg_round.in_flight of the common cycles.
    Why: a slot that is freed on return rather than on commit gave 3.4 in flight against 9.7 in the reference system: the
        sim had another concurrency than the one that was asked for.
    Reads: agg_round.in_flight.
    Statistic: equality, close by close (exact); difference of the means relative to real, or absolute where real holds
        none (fidelity).
    Tolerance: exact 0; fidelity 0.3.
    Known limits: a synchronous loop whose cohort is all of it holds none in either run.
    """
    frames = [window.in_cycles(run.rounds).select("cycle", "in_flight") for run in pair.runs]
    if pair.exact:
        return equal_rows("closes", "close of cycle {cycle}", *frames)
    real, sim = (frame["in_flight"].drop_nulls() for frame in frames)
    return measured(mean(real, sim, TOL, name="mean in flight", relative=True))
