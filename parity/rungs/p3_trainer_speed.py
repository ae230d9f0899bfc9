"""P3: each trainer is as fast in the sim as in the real run."""

from parity.evidence import Pair, Run, Window
from parity.measures.compare import equal
from parity.rung import EXACT, LOGICAL, Finding, rung, skipped


@rung(id="P3", name="trainer_speed", stage=1, tier=EXACT, domain=LOGICAL, needs=["dispatch.trainer", "dispatch.delay_ns"], over="cycles")
def trainer_speed(pair: Pair, window: Window) -> Finding:
    """The modelled duration D of each trainer is identical in both runs.

    What it checks: the set of modelled durations that each trainer was dispatched with, within the window.
    Why: delays that are set on one side of a pair only were a defect of the reference system; every order
        that follows would differ.
    Reads: dispatch.trainer, dispatch.delay_ns.
    Statistic: trainers whose durations differ.
    Tolerance: 0, in both tiers.
    Known limits: trainers that only one of the runs ever dispatched are left out, for they are the
        selection's affair (S34).
    """
    real, sim = (_durations(run, window) for run in pair.runs)
    common = sorted(real.keys() & sim.keys())
    if not common:
        return skipped("no trainer was dispatched in both runs")
    return equal("trainers", {name: real[name] for name in common}, {name: sim[name] for name in common})


def _durations(run: Run, window: Window) -> dict[str, list[float]]:
    """Trainer -> its modelled seconds, sorted."""
    frame = (
        window.in_cycles(run.frame("dispatch", "cycle", "trainer", "delay_ns"))
        .select("trainer", "delay_ns")
        .unique()
        .sort("trainer", "delay_ns")
    )
    found: dict[str, list[float]] = {}
    for trainer, delay in frame.iter_rows():
        found.setdefault(trainer, []).append(delay / 1e9)
    return found
