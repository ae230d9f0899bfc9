"""K3b: a cycle moves both clocks equally far, on average."""

from parity.derived.advance import advances
from parity.evidence import Pair, Window
from parity.measures.statistics import mean
from parity.rung import DIST, PHYSICAL, Finding, measured, rung, skipped

TOL = 0.10


@rung(
    id="K3b",
    name="overhead_residual",
    stage=1,
    tier=DIST,
    domain=PHYSICAL,
    needs=["agg_round.clock", "agg_round.cohort", "dispatch.delay_ns"],
    upstream=["P3", "K1"],
    over="cycles",
)
def overhead_residual(pair: Pair, window: Window) -> Finding:
    """The mean advance of the real clock per cycle is that of the virtual clock.

    What it checks: wall seconds between closes of the real run, virtual seconds between those of the sim.
    Why: what the real run takes beyond the model (transport, aggregation, a machine that can't keep up) is missing
        in the sim; here it shows, and as a share.
    Reads: agg_round.wall_s (real), vclock_ns (sim).
    Statistic: difference of the mean advances, relative to real; block permutation over aligned cycles.
    Tolerance: 0.10.
    Known limits: the whole overhead of a cycle in one number; K4 and K3 say more of its shape.
    """
    real, sim = (advances(run, window)["advance_s"] for run in pair.runs)
    if real.len() != sim.len() or not real.len():
        return skipped(f"real has the clock of {real.len()} common cycles, sim of {sim.len()}")
    return measured(mean(real, sim, TOL, name="mean advance", relative=True, aligned=True))
