"""F: how often the clock jumps because nothing could happen."""

from itertools import pairwise
from statistics import fmean

from parity.evidence import Pair, Run, Window
from parity.rung import DIAG, LOGICAL, Finding, rung, skipped

JUMP = 5.0


@rung(id="F", name="starvation_advance", stage=2, tier=DIAG, domain=LOGICAL, needs=["agg_round.stamp_ns"], upstream=["C3"], over="cycles")
def starvation_advance(pair: Pair, window: Window) -> Finding:
    """How many gaps between closes are longer than five times the mean gap, and how much of the time they are.

    What it checks: nothing; it shows how much of a run is waiting for trainers to come back.
    Why: a run that mostly starves is a measurement of its traces, not of its algorithm.
    Reads: agg_round.stamp_ns.
    Statistic: number of such gaps, and their share of the time, in each run; the effect is the difference of the numbers.
    Tolerance: none (DIAG).
    Known limits: with fewer than six gaps none can be that long.
    """
    found = {run.side: _jumps(run, window) for run in pair.runs}
    if not all(n for _, _, n in found.values()):
        return skipped("fewer than two common closes")
    text = ", ".join(f"{side} {count} of {n} gaps, {share:.0%} of the time" for side, (count, share, n) in found.items())
    return Finding(None, text, effect=float(abs(found["real"][0] - found["sim"][0])), n=found["real"][2])


def _jumps(run: Run, window: Window) -> tuple[int, float, int]:
    """(how many, their share of the time, out of how many gaps)."""
    stamps = window.in_cycles(run.rounds)["stamp_ns"].drop_nulls().to_list()
    gaps = [after - before for before, after in pairwise(stamps)]
    most = JUMP * fmean(gaps) if gaps else 0.0
    long = [gap for gap in gaps if gap > most]
    return len(long), sum(long) / max(1, sum(gaps)), len(gaps)
