"""T2: training takes no longer in the sim's model than it does."""

import numpy as np
from numpy.typing import NDArray

from parity.derived.phases import with_phases
from parity.evidence import Pair, Run, Window
from parity.measures.statistics import ALPHA, quantile_share
from parity.rung import DIST, PHYSICAL, Finding, failed, passed, rung, skipped

TOL = 1.15
SHARE = 0.01


@rung(id="T2", name="training_budget", stage=4, tier=DIST, domain=PHYSICAL, needs=["trainer_round.phases", "trainer_round.delay_ns"])
def training_budget(pair: Pair, window: Window) -> Finding:
    """max(compute, D) of the sim's jobs: the 99th percentile is at most 1.15 times that of the real run.

    What it checks: what each job takes out of its trainer's time: its modelled duration, or what it measured where that is
        more.
    Why: a sim that computes for longer than the devices that it models measures its own machine.
    Reads: trainer_round.phases (compute), trainer_round.delay_ns.
    Statistic: 99th percentiles; where more than 1 % of the sim's jobs are over the limit, the binomial chance of so many.
    Tolerance: 1.15 times real, one-sided.
    Known limits: an async sim that stops earlier has fewer slow jobs. One long job among a few dozen is within the chance of
        1 %, and is SKIP.
    """
    real, sim = (budgets(run) for run in pair.runs)
    if not real.size or not sim.size:
        return skipped("one run has no job whose compute was measured")
    limit = TOL * _p99(real)
    text = f"p99 real {_p99(real):.3f} s, sim {_p99(sim):.3f} s"
    over, chance = quantile_share(sim, limit, SHARE)
    effect, n = _p99(sim) / _p99(real), int(sim.size)
    if effect <= TOL:
        return passed(text, effect=effect, tol=TOL, n=n)
    if chance > ALPHA:
        return skipped(f"n={n}: {over} over {limit:.3f} s is within the chance of {SHARE:.0%} (p {chance:.2f}); {text}", n=n)
    return failed(f"{over} of {n} jobs over {limit:.3f} s; {text}", effect=effect, tol=TOL, n=n)


def computed(run: Run) -> NDArray[np.float64]:
    """(jobs, 2): measured compute and modelled D of each job, seconds."""
    jobs = with_phases(run, "delay_ns").select("compute", d="delay_ns").drop_nulls()
    return jobs.to_numpy() * [1.0, 1e-9]


def budgets(run: Run) -> NDArray[np.float64]:
    """max(compute, D) of each job, seconds."""
    return np.asarray(computed(run).max(axis=1, initial=0.0))


def _p99(values: NDArray[np.float64]) -> float:
    return float(np.quantile(values, 1 - SHARE, method="inverted_cdf"))
