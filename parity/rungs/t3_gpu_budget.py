"""T3: the machine does the work in the time that the modelled devices have."""

import numpy as np

from parity.evidence import Pair, Window
from parity.measures.statistics import ALPHA, quantile_share
from parity.rung import INV, PHYSICAL, Finding, failed, passed, rung, skipped
from parity.rungs.t2_training_budget import computed

TOL = 0.25


@rung(
    id="T3",
    name="gpu_budget",
    stage=4,
    tier=INV,
    domain=PHYSICAL,
    needs=["trainer_round.phases", "trainer_round.delay_ns"],
    upstream=["T2"],
)
def gpu_budget(pair: Pair, window: Window) -> Finding:
    """At most a quarter of the computes take longer than their D, in either run.

    What it checks: in each run, the measured compute of each job against the modelled duration of its trainer.
    Why: max(compute, D) hides a machine that is slower than what it models, until every job is.
    Reads: trainer_round.phases (compute), trainer_round.delay_ns.
    Statistic: the share; where it is over the limit, the binomial chance of so many.
    Tolerance: 0.25.
    Known limits: the compute alone; waiting for the worker is Lt's and Ovr's affair.
    """
    shares, told = [], []
    for run in pair.runs:
        jobs = computed(run)
        if not jobs.size:
            return skipped(f"{run.side}: no job whose compute was measured")
        excess = jobs[:, 0] - jobs[:, 1]
        over, chance = quantile_share(excess, 0.0, TOL)
        shares.append((over / excess.size, chance, excess.size))
        told.append(f"{run.side} {over} of {excess.size} computes over their D, at most {float(np.max(jobs[:, 0])):.3f} s")
    effect, chance, n = max(shares)
    text = "; ".join(told)
    if effect <= TOL:
        return passed(text, effect=effect, tol=TOL, n=n)
    if chance > ALPHA:
        return skipped(f"n={n}: within the chance of {TOL:.0%} (p {chance:.2f}); {text}", n=n)
    return failed(text, effect=effect, tol=TOL, n=n)
