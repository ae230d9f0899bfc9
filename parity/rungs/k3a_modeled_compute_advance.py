"""K3a: how far a cycle moves the clock, beside how long its slowest member takes."""

from parity.derived.advance import advances
from parity.evidence import Pair, Window
from parity.rung import DIAG, PHYSICAL, Finding, rung, skipped


@rung(
    id="K3a",
    name="modeled_compute_advance",
    stage=1,
    tier=DIAG,
    domain=PHYSICAL,
    needs=["agg_round.clock", "agg_round.cohort", "dispatch.delay_ns"],
    upstream=["P3", "K1"],
    over="cycles",
)
def modeled_compute_advance(pair: Pair, window: Window) -> Finding:
    """The mean advance of the clock per cycle, against the mean duration of each cycle's slowest member.

    What it checks: nothing; it says what a cycle costs beyond the slowest modelled duration in it, in each run. Where
        cycles overlap (C > K) that is negative.
    Why: a clock that moves by what the devices are modelled to take leaves only overhead to explain.
    Reads: agg_round.wall_s (real), vclock_ns (sim), agg_round.cohort, dispatch.delay_ns.
    Statistic: mean advance - mean slowest, in each run; the effect is how far they are apart.
    Tolerance: none (DIAG).
    Known limits: time that nobody could be chosen counts as overhead too.
    """
    told, overheads = [], []
    for run in pair.runs:
        frame = advances(run, window)
        if not frame.height:
            return skipped(f"{run.side}: no cycle has both a clock and a modelled duration")
        advance, slowest = frame.select("advance_s", "slowest_s").mean().row(0)
        overheads.append(advance - slowest)
        told.append(f"{run.side} {advance:.3f} s for {slowest:.3f} s, overhead {advance - slowest:+.3f} s")
    return Finding(None, "; ".join(told), effect=abs(overheads[0] - overheads[1]), n=window.cycles)
