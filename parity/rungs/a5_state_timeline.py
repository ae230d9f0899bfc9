"""A5: each trainer is in the same state at the same progress."""

from parity.derived.presence import closes, unwatched, watched
from parity.evidence import Pair, Run, Window
from parity.measures.compare import equal
from parity.measures.pace import of_lead
from parity.rung import DIST, LOGICAL, Finding, measured, rung, skipped

TOL = 0.05
INSTANTS = 20


@rung(id="A5", name="state_timeline", stage=2, tier=DIST, domain=LOGICAL, needs=["agg_round.stamp_ns"], upstream=["A3"], over="cycles")
def state_timeline(pair: Pair, window: Window) -> Finding:
    """At twenty closes, evenly over the window, each trainer is in the same state in both runs.

    What it checks: the state of each trainer by its trace, at the stamps that each run gave to these closes.
    Why: as many may be away in both, and others: A1 counts, this one names.
    Reads: agg_round.stamp_ns; the traces of the condition.
    Statistic: equality (exact); the share of trainers and instants that differ; chance: block permutation of the lead that
        the advances per cycle add up to, times the changes of state per second (fidelity).
    Tolerance: exact 0; fidelity 0.05.
    Known limits: those of A1. A lead that turns into as long a lag says nothing in the mean: K3 sees its advances.
    """
    nothing = unwatched(pair)
    if nothing:
        return skipped(nothing)
    real, sim = (_timeline(run, window) for run in pair.runs)
    if pair.exact:
        return equal("instants", real, sim)
    both = [(states, sim[instant]) for instant, states in real.items() if instant in sim]
    differ = [one[node] != two[node] for one, two in both for node in one]
    share, held = sum(differ) / max(1, len(differ)), list(watched(pair.real).values())
    text = f"{sum(differ)} of {len(differ)} states differ"
    return measured(of_lead(pair, window, share, TOL, "states that differ", held), reason=text)


def _timeline(run: Run, window: Window) -> dict[str, dict[str, str]]:
    """Instant -> node -> state."""
    held = watched(run)
    instants = closes(run, window, INSTANTS)
    return {f"close of cycle {cycle}": {node: trace.state(stamp) for node, trace in held.items()} for cycle, stamp in instants}
