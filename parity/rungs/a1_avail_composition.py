"""A1: as many trainers are in each state, at the same progress."""

from parity.derived.presence import STATES, closes, composition, unwatched
from parity.evidence import Pair, Window
from parity.measures.compare import equal
from parity.measures.statistics import mean
from parity.rung import DIST, LOGICAL, Finding, measured, rung, skipped

TOL = 0.20


@rung(id="A1", name="avail_composition", stage=2, tier=DIST, domain=LOGICAL, needs=["agg_round.stamp_ns"], over="cycles")
def avail_composition(pair: Pair, window: Window) -> Finding:
    """The share of trainers that can train, that can evaluate only, and that are away, agrees close by close.

    What it checks: the state of each trainer by the condition's traces, at the stamps that each run gave to the common
        closes.
    Why: a run that is faster or slower than its twin meets other phones at the same progress, and everything that is
        chosen from there on has another pool.
    Reads: agg_round.stamp_ns; the traces of the condition.
    Statistic: equality of the shares at each close (exact); difference of the mean share of each state, block permutation
        over aligned closes (fidelity).
    Tolerance: exact 0; fidelity 0.20.
    Known limits: trainers say nothing of their states, so they are the trace's; A6 and A7 check what the runs did with
        it. Of more than 200 trainers or closes an even spread is looked at. SKIP where nobody is ever away.
    """
    nothing = unwatched(pair)
    if nothing:
        return skipped(nothing)
    real, sim = (composition(run, window) for run in pair.runs)
    if pair.exact:
        labels = [f"close of cycle {cycle}" for cycle, _ in closes(pair.real, window)]
        return equal("closes", dict(zip(labels, real, strict=False)), dict(zip(labels, sim, strict=False)))
    if len(real) != len(sim):
        return skipped(f"real has the stamps of {len(real)} common closes, sim of {len(sim)}")
    return measured(
        *(mean([row[state] for row in real], [row[state] for row in sim], TOL, name=f"share of {state}", aligned=True) for state in STATES)
    )
