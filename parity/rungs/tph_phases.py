"""Tph: what a job consists of takes as long in the sim as in the real run."""

import numpy as np
from numpy.typing import NDArray

from parity.derived.phases import with_phases
from parity.evidence import Pair, Run, Window
from parity.measures.statistics import ks
from parity.rung import DIST, PHYSICAL, Finding, measured, rung, skipped

TOL = 0.25
FLOOR_S = 0.005
SHARE = 0.5
JUDGED = ("decode", "to_device", "compute", "to_host", "encode")
SHOWN = ("fetch", "hold", "send")


@rung(
    id="Tph",
    name="phases",
    stage=4,
    tier=DIST,
    domain=PHYSICAL,
    needs=["trainer_round.phases"],
    upstream=["T2"],
)
def phases(pair: Pair, window: Window) -> Finding:
    """The phases of a job (decode, to_device, compute, to_host, encode) have one law in both runs.

    What it checks: the measured seconds of each phase that both runs measure, over all of their jobs.
    Why: the sim runs the same functions as the devices' stand-ins do; where one of them takes longer, the two aren't the same
        program, or a machine does something beside.
    Reads: trainer_round.phases.
    Statistic: KS of each phase.
    Tolerance: 0.25; what lies no farther apart than 5 ms, or than half of the slower run's median, counts as equal: workers that
        share cores, or a machine that is a little slower, are no other program.
    Known limits: a phase that one run doesn't have is left out and named: a sim encodes and decodes with `--wire roundtrip`
        alone, only torch moves values. Fetch, hold and send are the world's own, and shown where they are measured. A sim on a
        machine of more than twice the speed fails, and is exact all the same.
    """
    found = {name: tuple(seconds(run, name) for run in pair.runs) for name in JUDGED}
    absent = [f"{name} ({' and '.join(sides)})" for name in JUDGED if (sides := _without(pair, found[name]))]
    note = "; ".join(part for part in (f"not measured: {', '.join(absent)}" if absent else "", _shown(pair)) if part)
    both = {name: values for name, values in found.items() if all(side.size for side in values)}
    if not both:
        return skipped(f"no phase is measured in both runs; {note}")
    return measured(*(ks(real, sim, TOL, name=f"KS of {name}", slack=_slack(real, sim)) for name, (real, sim) in both.items()), reason=note)


def _slack(real: NDArray[np.float64], sim: NDArray[np.float64]) -> float:
    return max(FLOOR_S, SHARE * float(max(np.median(real), np.median(sim))))


def seconds(run: Run, phase: str) -> NDArray[np.float64]:
    """Measured seconds of one phase, of each job that has it."""
    return with_phases(run, "_seq").select("_seq", phase).sort("_seq")[phase].drop_nulls().to_numpy()


def _without(pair: Pair, values: tuple[NDArray[np.float64], ...]) -> list[str]:
    return [run.side for run, side in zip(pair.runs, values, strict=True) if not side.size]


def _shown(pair: Pair) -> str:
    """Means of the phases that are only shown."""
    means = [(name, run.side, values.mean()) for name in SHOWN for run in pair.runs if (values := seconds(run, name)).size]
    return "shown: " + ", ".join(f"{name} {side} {mean:.3f} s" for name, side, mean in means) if means else ""
