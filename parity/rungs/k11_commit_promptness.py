"""K11: a withheld update is taken soon after it has come."""

from parity.evidence import Pair, Run, Window
from parity.rung import INV, PHYSICAL, Finding, rung
from parity.rungs.lags import JITTER_S, release_lags
from parity.single import Look, in_each

LONGEST_S = 30.0


@rung(
    id="K11",
    name="commit_promptness",
    stage=6,
    tier=INV,
    domain=PHYSICAL,
    needs=["accepted.due_ns", "real:lateness.late_s"],
    reads=["withheld"],
    upstream=["C2w"],
)
def commit_promptness(pair: Pair, window: Window) -> Finding:
    """From the delivery of a withheld update to its release no more than 30 s pass, on each run's own clock.

    What it checks: the clock at the release of each withheld update less that of its delivery.
    Why: what comes late must not be put off once more; the sim takes it at once.
    Reads: withheld, accepted.due_ns and clock, lateness.late_s of the real run.
    Statistic: number of withheld updates outside [0, 30] s.
    Tolerance: 0; a jitter of 0.05 s below 0 is measurement.
    Known limits: released isn't yet in a closed cycle, which waits for K; that is U6's.
    """
    return in_each(pair.runs, _slow, "released withheld updates")


def _slow(run: Run) -> Look:
    withheld = run.frame("withheld").select("id")
    lags = run.derived(release_lags).drop_nulls().join(withheld, on="id", how="semi", maintain_order="left")
    faults = [
        f"id {key} (cycle {cycle}) was released {lag:.3f} s after its delivery"
        for key, cycle, lag in lags.iter_rows()
        if not -JITTER_S <= lag <= LONGEST_S
    ]
    largest = lags["lag_s"].max()
    return Look(lags.height, faults, f"largest {largest:.3f} s" if isinstance(largest, float) else "")
