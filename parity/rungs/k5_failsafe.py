"""K5: no run was ended by the ceiling of wall time."""

from parity.evidence import Pair, Run, Window
from parity.rung import INV, PHYSICAL, Finding, rung
from parity.single import Look, in_each

CEILING = "WALL_CEILING"


@rung(id="K5", name="failsafe", stage=9, tier=INV, domain=PHYSICAL, needs=["verdict.verdict"])
def failsafe(pair: Pair, window: Window) -> Finding:
    """Neither run hit the wall ceiling.

    What it checks: the verdict of both runs.
    Why: a stop condition on wall time truncates a run before its logical stop; the ceiling is a failsafe, and
        a run that hit it was too slow for its budget.
    Reads: verdict.json.
    Statistic: number of runs that ended with WALL_CEILING.
    Tolerance: 0.
    Known limits: none.
    """
    return in_each(pair.runs, ceiling, "verdicts")


def ceiling(run: Run) -> Look:
    """Whether `run` hit the ceiling."""
    verdict = run.verdict
    if verdict is None:
        return Look(0)
    return Look(1, [f"{CEILING}: {verdict.reason}"] if verdict.verdict == CEILING else [])
