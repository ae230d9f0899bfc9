"""K7: virtual time passes at a believable rate."""

from parity.evidence import Pair, Run, Window
from parity.rung import INV, PHYSICAL, Finding, failed, passed, rung, skipped

LOW, HIGH = 0.01, 1e6


@rung(
    id="K7", name="sim_rate", stage=1, tier=INV, domain=PHYSICAL, needs=["sim:agg_round.vclock_ns", "sim:verdict.wall_s"], upstream=["K10"]
)
def sim_rate(pair: Pair, window: Window) -> Finding:
    """Virtual seconds per wall second of the sim lie in [0.01, 1e6].

    What it checks: the last virtual clock over the wall time from ready to stop.
    Why: below, the sim waits for something it should know; above, the clock jumps and nothing is computed.
    Reads: agg_round.vclock_ns and verdict.wall_s of the sim.
    Statistic: the rate.
    Tolerance: [0.01, 1e6].
    Known limits: one number for the whole run.
    """
    rate = rate_of(pair.sim)
    if rate is None:
        return skipped("the sim took no wall time that can be measured")
    n = pair.sim.rounds.height
    text = f"{told(rate)} virtual seconds per wall second"
    return passed(text, effect=rate, n=n) if LOW <= rate <= HIGH else failed(f"{text}, outside [{LOW}, {HIGH:.0e}]", effect=rate, n=n)


def rate_of(run: Run) -> float | None:
    """Virtual seconds per wall second up to the last close; None where no wall time was measured."""
    verdict, last = run.verdict, run.rounds["vclock_ns"].max()
    if verdict is None or verdict.wall_s <= 0 or not isinstance(last, int):
        return None
    return last / 1e9 / verdict.wall_s


def told(rate: float) -> str:
    """A rate with three digits, and never as a power of ten."""
    return f"{rate:.0f}" if rate >= 100 else f"{rate:.3g}"
