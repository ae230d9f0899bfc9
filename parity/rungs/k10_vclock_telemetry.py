"""K10: the simulation says what time it was."""

from parity.evidence import Pair, Run, Window
from parity.rung import INV, LOGICAL, Finding, rung
from parity.single import Look, in_each


@rung(id="K10", name="vclock_telemetry", stage=0, tier=INV, domain=LOGICAL, needs=["sim:agg_round.cycle"], upstream=["TC1"])
def vclock_telemetry(pair: Pair, window: Window) -> Finding:
    """Each closed cycle of the sim carries the virtual clock.

    What it checks: agg_round.vclock_ns on every row of the sim.
    Why: all clock rungs stand on it.
    Reads: agg_round.vclock_ns of the sim.
    Statistic: rows without it.
    Tolerance: 0.
    Known limits: none.
    """
    return in_each([pair.sim], clocked, "closed cycles")


def clocked(run: Run) -> Look:
    """The closed cycles without a virtual clock."""
    rounds = run.rounds
    absent = rounds.filter(rounds["vclock_ns"].is_null())["cycle"].to_list()
    return Look(rounds.height, [f"cycle {cycle}: no `agg_round.vclock_ns`" for cycle in absent])
