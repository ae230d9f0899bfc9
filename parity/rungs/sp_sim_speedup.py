"""Sp: the simulation is faster than what it simulates."""

from parity.evidence import Pair, Window
from parity.rung import DIST, PHYSICAL, Finding, failed, passed, rung, skipped
from parity.rungs.k7_sim_rate import rate_of, told

TOL = 1.0


@rung(
    id="Sp",
    name="sim_speedup",
    stage=1,
    tier=DIST,
    domain=PHYSICAL,
    needs=["sim:agg_round.vclock_ns", "sim:verdict.wall_s"],
    upstream=["K7"],
    shown=True,
    alone=True,
)
def sim_speedup(pair: Pair, window: Window) -> Finding:
    """The sim passes at least one virtual second per wall second; real wall over sim wall is shown.

    What it checks: vclock over the sim's wall time, and beside it how much sooner the sim was done.
    Why: a simulation that is slower than the run it stands for saves nobody anything.
    Reads: agg_round.vclock_ns and verdict.wall_s of the sim; verdict.wall_s of the real run, where it has one.
    Statistic: the rate (larger is better), a single number: no sampling, so no critical value.
    Tolerance: >= 1.
    Known limits: the wall time is from ready to stop; what is built before (prefix cache, model loading)
        is not in it. Both runs should have been made on one machine.
    """
    rate, real, sim = rate_of(pair.sim), pair.real.verdict, pair.sim.verdict
    if rate is None or sim is None:
        return skipped("the sim took no wall time that can be measured")
    beside = f"; real wall {real.wall_s:.1f} s / sim wall {sim.wall_s:.2f} s = {real.wall_s / sim.wall_s:.1f}" if real else ""
    text = f"sim_rate {told(rate)}{beside}"
    return passed(text, effect=rate, tol=TOL, n=1) if rate >= TOL else failed(f"{text}; below {TOL:.0f}", effect=rate, tol=TOL, n=1)
