"""K3: each cycle moves both clocks equally far."""

from parity.derived.advance import advances
from parity.evidence import Pair, Window
from parity.measures.statistics import ks, mean
from parity.rung import DIST, PHYSICAL, Finding, measured, rung, skipped
from parity.rungs.lt_lateness import TOL_S


@rung(
    id="K3",
    name="per_round_advance",
    stage=1,
    tier=DIST,
    domain=PHYSICAL,
    needs=["agg_round.clock", "agg_round.cohort", "dispatch.delay_ns"],
    upstream=["K3b"],
    over="cycles",
)
def per_round_advance(pair: Pair, window: Window) -> Finding:
    """The advances of the clock per cycle have one distribution in both runs, and one mean.

    What it checks: wall seconds between closes of the real run, virtual seconds between those of the sim.
    Why: means may agree where the cycles don't: long ones in one run, made up for by short ones.
    Reads: agg_round.wall_s (real), vclock_ns (sim).
    Statistic: KS, in which values that are no farther apart than a quarter of the mean advance, or the 0.25 s that Lt
        allows, count as equal, and the relative difference of the means; block permutation over aligned cycles.
    Tolerance: KS 0.2, mean 0.15.
    Known limits: without that slack a virtual clock, which takes a few values only, is at a KS of 0.5 and more from a
        real one that jitters about them by a millisecond.
    """
    real, sim = (advances(run, window)["advance_s"] for run in pair.runs)
    if real.len() != sim.len() or not real.len():
        return skipped(f"real has the clock of {real.len()} common cycles, sim of {sim.len()}")
    return measured(ks(real, sim, 0.2, aligned=True, slack=TOL_S), mean(real, sim, 0.15, name="mean advance", relative=True, aligned=True))
