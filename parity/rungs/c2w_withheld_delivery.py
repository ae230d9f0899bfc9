"""C2w: what a trainer couldn't send while it was away counts when it is back."""

from parity.away import wrongly_withheld
from parity.evidence import Pair, Window
from parity.rung import INV, LOGICAL, Finding, rung
from parity.single import in_each


@rung(
    id="C2w",
    name="withheld_delivery",
    stage=6,
    tier=INV,
    domain=LOGICAL,
    needs=["accepted.staleness", "accepted.interval_ns", "dispatch.up_ns"],
    reads=["withheld", "dispatch", "intrusion", "peer"],
    upstream=["U3", "C3"],
)
def withheld_delivery(pair: Pair, window: Window) -> Finding:
    """A withheld update is released at its trainer's next available instant, with its true age, and is never lost.

    What it checks: in each run, each assign that was said to be withheld: its due is the next instant of its trainer's
        trace at which it can train, and the leg up; its staleness is what passed since its dispatch; and it is released, unless
        it was given up for good or the run ended before.
    Why: an update that is sent by somebody who is away, or that is forgotten because it was late, is how a
        simulation of phones gets its results for free.
    Reads: withheld, dispatch, accepted, agg_round, intrusion, peer; the traces of the condition.
    Statistic: number of withheld updates that break the rule.
    Tolerance: 0.
    Known limits: a trace file that isn't where the condition has it can't be asked; the instant is then not checked.
        That an update's stamp is its due is K6's.
    """
    return in_each(pair.runs, wrongly_withheld, "withheld updates")
