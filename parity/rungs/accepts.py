"""What the rungs over accepted updates share: one value, or several, of each update by its id."""

from parity.evidence import Pair, Window
from parity.measures.tables import equal_rows
from parity.rung import Finding


def equal_by_id(pair: Pair, window: Window, what: str, *columns: str) -> Finding:
    """Whether the updates that were taken in the cycles of the window have equal values in these columns."""
    real, sim = (window.in_cycles(run.accepts("id", *columns)).select("id", *columns) for run in pair.runs)
    return equal_rows(what, "id {id}", real, sim)
