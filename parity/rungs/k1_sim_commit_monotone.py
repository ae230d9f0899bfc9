"""K1: virtual time doesn't run backwards."""

from itertools import pairwise

from flame.core.time import clock_text
from parity.evidence import Pair, Run, Window
from parity.rung import INV, LOGICAL, Finding, rung
from parity.single import Look, in_each


@rung(id="K1", name="sim_commit_monotone", stage=1, tier=INV, domain=LOGICAL, needs=["sim:agg_round.vclock_ns"], upstream=["K10"])
def sim_commit_monotone(pair: Pair, window: Window) -> Finding:
    """The virtual clock never falls from one closed cycle to the next.

    What it checks: agg_round.vclock_ns in the order of the cycles of the sim.
    Why: an event that is popped before its time means that the heap, or the order of the inbox, is broken.
    Reads: agg_round.vclock_ns of the sim.
    Statistic: number of falls.
    Tolerance: 0.
    Known limits: it sees closes only, not each event between them.
    """
    return in_each([pair.sim], falls, "closed cycles")


def falls(run: Run) -> Look:
    """The closes whose virtual clock is before that of the close before."""
    clocks = run.rounds.select("cycle", "vclock_ns").drop_nulls().rows()
    faults = [
        f"cycle {cycle}: vclock fell from {clock_text(before)} to {clock_text(now)}"
        for (_, before), (cycle, now) in pairwise(clocks)
        if now < before
    ]
    return Look(len(clocks), faults)
