"""What DK1 and DK2 share: one of the sizes in force, cycle by cycle."""

from parity.evidence import Pair, Window
from parity.measures.statistics import ks
from parity.measures.tables import equal_rows
from parity.rung import Finding, failed, measured, passed


def compare_sizes(pair: Pair, window: Window, column: str, letter: str, tol: float = 0.2) -> Finding:
    """Equality of `column` in each cycle (exact); KS, or equality where it is constant in both (fidelity)."""
    if pair.exact:
        return equal_rows("cycles", "cycle {cycle}", *(window.in_cycles(run.rounds).select("cycle", column) for run in pair.runs))
    real, sim = (window.in_cycles(run.rounds)[column] for run in pair.runs)
    ranges = [values.unique().sort().to_list() for values in (real, sim)]
    if all(len(values) == 1 for values in ranges):
        (one,), (two,) = ranges
        n = min(real.len(), sim.len())
        if one == two:
            return passed(f"{letter} = {one} in {n} cycles", effect=0.0, tol=0.0, n=n)
        return failed(f"{letter} is constant, {one} in real and {two} in sim", effect=1.0, tol=0.0, n=n)
    return measured(ks(real, sim, tol, name=f"KS of {letter}"))
