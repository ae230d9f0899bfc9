"""A4: each trainer could train for the same share of the time."""

from parity.derived.presence import time_in_state, unwatched
from parity.evidence import Pair, Window
from parity.measures.compare import equal
from parity.measures.pace import of_span
from parity.rung import DIST, LOGICAL, Finding, measured, rung, skipped

TOL = 0.2


@rung(id="A4", name="duty_cycle", stage=2, tier=DIST, domain=LOGICAL, needs=["agg_round.stamp_ns"], upstream=["A3"], over="cycles")
def duty_cycle(pair: Pair, window: Window) -> Finding:
    """The share of time that each trainer can train, from the start to the last common close, agrees.

    What it checks: the trace of each trainer, over the time that each run took for the common cycles.
    Why: a run that takes longer for the same cycles sees more of the traces; its trainers were not there as often.
    Reads: agg_round.stamp_ns; the traces of the condition.
    Statistic: equality (exact); the largest difference over trainers; chance: block permutation of the advances per cycle,
        for the traces are given (fidelity).
    Tolerance: exact 0; fidelity 0.2.
    Known limits: states are the trace's, as A1 says. Of more than 200 trainers an even spread is looked at. SKIP where
        nobody is ever away.
    """
    nothing = unwatched(pair)
    if nothing:
        return skipped(nothing)
    shares = [time_in_state(run, window) for run in pair.runs]
    real, sim = ({node: states["AVL_TRAIN"] for node, states in side.items()} for side in shares)
    if pair.exact:
        return equal("trainers", real, sim)
    worst = max(real, key=lambda node: abs(real[node] - sim[node]))
    text = f"at most: `{worst}` could train for {real[worst]:.0%} of real, {sim[worst]:.0%} of sim"
    return measured(of_span(pair, window, abs(real[worst] - sim[worst]), TOL, "largest difference of share"), reason=text)
