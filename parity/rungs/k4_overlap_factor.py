"""K4: cycles overlap as much in both runs."""

from parity.derived.advance import advances
from parity.evidence import Pair, Window
from parity.measures.statistics import ratio
from parity.rung import DIST, PHYSICAL, Finding, measured, rung, skipped

TOL = 0.3


@rung(
    id="K4",
    name="overlap_factor",
    stage=1,
    tier=DIST,
    domain=PHYSICAL,
    needs=["agg_round.clock", "agg_round.cohort", "dispatch.delay_ns"],
    upstream=["P3", "K1"],
    over="cycles",
)
def overlap_factor(pair: Pair, window: Window) -> Finding:
    """The duration of the slowest member over the advance of the clock agrees: how many cycles are under way at once.

    What it checks: mean slowest modelled duration over mean advance, on each run's own clock.
    Why: 1 is a loop that waits for its slowest; above, cycles overlap; below, something else is waited for. A sim that
        serialises what overlaps in the real run is right in everything but time.
    Reads: agg_round.wall_s (real), vclock_ns (sim), agg_round.cohort, dispatch.delay_ns.
    Statistic: difference of the two ratios; chance by block permutation of their linear part.
    Tolerance: 0.3.
    Known limits: an average over the window.
    """
    frames = [advances(run, window) for run in pair.runs]
    real, sim = ((frame["slowest_s"], frame["advance_s"]) for frame in frames)
    if frames[0].height != frames[1].height or any(frame["advance_s"].sum() <= 0 for frame in frames):
        return skipped("the two runs don't have the clocks of the same cycles")
    return measured(ratio(real, sim, TOL, name="overlap"))
