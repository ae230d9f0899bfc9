"""Aa: how many of the population could not be chosen."""

from statistics import fmean

from parity.derived.pools import selections
from parity.evidence import Pair, Run, Window
from parity.rung import DIAG, LOGICAL, Finding, rung, skipped


@rung(
    id="Aa",
    name="eligible_pool_reduction",
    stage=2,
    tier=DIAG,
    domain=LOGICAL,
    needs=["selection.candidates", "selection.eligible"],
    upstream=["A2"],
    over="cycles",
)
def eligible_pool_reduction(pair: Pair, window: Window) -> Finding:
    """The mean number of trainers that are there and can't be chosen, because they are at work or believed away.

    What it checks: nothing; it shows how much of the population the selector never sees.
    Why: a selector that has next to nobody to choose from selects nothing, however clever it is.
    Reads: selection.candidates, selection.eligible.
    Statistic: mean of candidates - eligible, in each run; the effect is their difference.
    Tolerance: none (DIAG).
    Known limits: those at work and those away are counted together.
    """
    barred = {run.side: _barred(run, window) for run in pair.runs}
    if not all(barred.values()):
        return skipped("one run has no selection in the common cycles")
    means = {side: fmean(counts) for side, counts in barred.items()}
    text = ", ".join(f"{side} {mean:.2f}" for side, mean in means.items())
    return Finding(None, f"{text} of {pair.condition.trainers}", effect=abs(means["real"] - means["sim"]), n=len(barred["real"]))


def _barred(run: Run, window: Window) -> list[int]:
    frame = selections(run, window, "candidates", "eligible")
    return (frame["candidates"] - frame["eligible"]).to_list()
