"""Lt: in the real run updates arrive when they are due."""

import numpy as np

from parity.evidence import Pair, Run, Window
from parity.rung import DIST, PHYSICAL, Finding, failed, passed, rung, skipped
from parity.statistics import ALPHA, quantile_share

TOL_S = 0.25
SHARE = 0.01


@rung(id="Lt", name="lateness", stage=1, tier=DIST, domain=PHYSICAL, needs=["real:lateness.late_s"], reads=["fault"])
def lateness(pair: Pair, window: Window) -> Finding:
    """Arrival minus due in the real run: the 99th percentile is at most 0.25 s, and none is beyond the grace.

    What it checks: how late updates reach the aggregator, against their due.
    Why: the exact tier holds the real run to the modelled order, and lateness is what that costs. Large
        lateness means that the machine can't keep up with the delays that were asked for.
    Reads: lateness.late_s of the real run, its faults, and limits.grace_s of its condition.
    Statistic: the 99th percentile; where more than 1 % are late, the binomial chance of so many.
    Tolerance: 0.25 s (meant for a broker on loopback); share beyond the grace 0.
    Known limits: updates that waited for a respawn or a broker's return are late for that and say nothing of the
        machine: where they are too many, and such faults were dealt with, the rung is SKIP and names them. A single late update among a few dozen is within the chance of 1 %, and is SKIP.
    """
    late = pair.real.frame("lateness")["late_s"].drop_nulls().to_numpy()
    n, grace = late.size, pair.real.condition.limits.grace_s
    p99 = float(np.quantile(late, 1 - SHARE, method="inverted_cdf"))
    text = f"p99 {p99:.3f} s, mean {late.mean():.3f} s, largest {late.max():.3f} s{_faults(pair.real)}"
    beyond = int((late > grace).sum())
    if p99 > TOL_S and _interrupted(pair.real):
        return skipped(f"the lateness is that of faults that were dealt with: {text}", n=n)
    if beyond:
        return failed(f"{beyond} of {n} updates beyond the grace of {grace:g} s; {text}", effect=p99, tol=TOL_S, n=n)
    over, chance = quantile_share(late, TOL_S, SHARE)
    if p99 <= TOL_S:
        return passed(text, effect=p99, tol=TOL_S, n=n)
    if chance > ALPHA:
        return skipped(f"n={n}: {over} over {TOL_S} s is within the chance of {SHARE:.0%} (p {chance:.2f}); {text}", n=n)
    return failed(f"{over} of {n} updates over {TOL_S} s; {text}", effect=p99, tol=TOL_S, n=n)


def _interrupted(run: Run) -> bool:
    """Whether a worker was started again or a connection was lost."""
    return bool(run.frame("fault")["what"].is_in(["respawn", "reconnected"]).any())


def _faults(run: Run) -> str:
    """What went wrong in the run and was dealt with."""
    counts = run.frame("fault")["what"].value_counts().sort("what")
    told = ", ".join(f"{what} {count}" for what, count in counts.iter_rows())
    return f"; faults that were dealt with: {told}" if told else ""
