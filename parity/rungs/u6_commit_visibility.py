"""U6: an update waits as long before it counts."""

from parity.evidence import Pair, Window
from parity.measures.statistics import ks, mean
from parity.rung import DIST, PHYSICAL, Finding, measured, rung, skipped
from parity.rungs.lags import JITTER_S, commit_lags


@rung(
    id="U6",
    name="commit_visibility",
    stage=6,
    tier=DIST,
    domain=PHYSICAL,
    needs=["agg_round.cohort", "accepted.due_ns", "real:lateness.late_s"],
    upstream=["K3"],
    over="cycles",
)
def commit_visibility(pair: Pair, window: Window) -> Finding:
    """From the delivery of an update to the close of its cycle as much time passes in both runs.

    What it checks: the close's clock less the update's delivery, of each update in a cycle of the window: wall
        against virtual clock, never stamps against stamps.
    Why: time that an update lies about at the aggregator is time that the simulation doesn't know of.
    Reads: agg_round.cohort and clock; accepted.due_ns; lateness.late_s of the real run.
    Statistic: KS beyond a jitter of 0.05 s, and difference of the means; updates are matched by their ids in the
        exact tier, where both runs hand out the same.
    Tolerance: KS 0.2, mean 2 s.
    Known limits: where the modelled delays are themselves of the size of the jitter it sees only the mean.
    """
    real, sim = (window.in_cycles(run.derived(commit_lags)) for run in pair.runs)
    if pair.exact:
        both = real.join(sim.select("id", other="lag_s"), on="id", maintain_order="left")
        one, two = both["lag_s"], both["other"]
    else:
        one, two = real["lag_s"], sim["lag_s"]
    if not one.len() or not two.len():
        return skipped("no update of a closed cycle has a known delivery in both runs")
    return measured(
        ks(one, two, 0.2, aligned=pair.exact, slack=JITTER_S),
        mean(one, two, 2.0, name="mean lag", aligned=pair.exact),
    )  # fmt: skip
