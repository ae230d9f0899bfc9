"""What C1 and C2 share: evaluations of the same model versions in both runs."""

import polars as pl

from parity.evidence import Pair, Run, Window
from parity.measures.compare import equal
from parity.measures.statistics import gap
from parity.rung import Finding, measured, skipped

SHORT_S = 7200.0


def compare_evaluations(pair: Pair, window: Window, column: str, tol: float) -> Finding:
    """Equality of `column` at each evaluated version (exact), or its mean absolute difference (fidelity)."""
    real, sim = (_by_version(run, window, column) for run in pair.runs)
    for version in real.keys() ^ sim.keys():
        if version >= window.bins:  # the evaluation of the last commit is released, or not, after the window
            real.pop(version, None), sim.pop(version, None)
    common = sorted(real.keys() & sim.keys())
    if not common:
        return skipped("no model version was evaluated in both runs")
    if pair.exact:
        return equal("evaluations", *({f"version {version}": values[version] for version in sorted(values)} for values in (real, sim)))
    one, two = ([values[version] for version in common] for values in (real, sim))
    return measured(gap(one, two, tol, name=f"mean {column} gap"), reason=_note(pair))


def _by_version(run: Run, window: Window, column: str) -> dict[int, float]:
    """Version -> value, up to the last commit of the window. A version that was evaluated twice keeps its first."""
    evals = run.frame("agg_eval").filter(pl.col("version") <= window.bins).unique("version", keep="first", maintain_order=True)
    return dict(evals.select("version", column).iter_rows())


def _note(pair: Pair) -> str:
    verdict = pair.real.verdict
    short = verdict is not None and verdict.virtual_s < SHORT_S
    return f"below {SHORT_S:.0f} s, learning has hardly begun" if short else ""
