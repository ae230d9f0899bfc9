"""What the traces of a condition say of a run: who was away, and when an answer could count.

Traces belong to the condition, so both are told without a word of the run itself. A condition whose
trace file isn't here can't be asked, and a look says that it had nothing to look at.
"""

import polars as pl

from parity.derived.presence import known_traces
from parity.evidence import Run
from parity.rungs.a6_trace_fidelity import against_trace
from parity.rungs.c2w_withheld_delivery import wrongly_withheld
from parity.single import Look


def misbelieved(run: Run) -> Look:
    """Dispatches to a trainer that was away by its trace, where the awareness policy lets the aggregator know it."""
    known = run.derived(known_traces)
    if known is None or run.condition.awareness == "none":
        return Look(0)
    rows = (
        run.frame("dispatch", "_seq", "id", "trainer", "stamp_ns")
        .sort("_seq")
        .select("id", "trainer", pl.col("stamp_ns").cum_max())
        .drop_nulls()
    )
    faults = [
        f"`{trainer}` got id {key} at {stamp / 1e9:.6f}, when it was known to be away"
        for key, trainer, stamp in rows.iter_rows()
        if trainer in known and not known[trainer].available(stamp)
    ]
    return Look(rows.height, faults)


def only_withheld(run: Run) -> Look:
    """Whoever is away when its work is done has its update withheld to its next available instant, and it counts only then."""
    if run.derived(known_traces) is None:
        return Look(0)
    assigns, counted = against_trace(run), wrongly_withheld(run)
    return Look(assigns.n + counted.n, [*assigns.faults, *counted.faults])
