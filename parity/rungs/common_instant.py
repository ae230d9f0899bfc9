"""What K8 and U2 share: how far each run was at the last instant that both reached.

In the exact tier that is a stamp, and both must be equally far. In the fidelity tier it is an instant of the
clock (real: wall since ready, sim: vclock), and one event may have fallen on the other side of it.

What got on at one rate gets differently far by chance, and more so in a short run: the count that is farthest apart
is held against the block permutation of what each close adds, less what its time would add at the common rate.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from parity.evidence import Pair, Run, Window
from parity.measures.compare import equal
from parity.measures.statistics import mean
from parity.rung import Finding, Measure, failed, measured, passed, skipped

TOL = 0.05

Told = Callable[[pl.DataFrame], Mapping[str, int]]
"""Closed cycles up to the instant -> what is counted, by name."""

ADDED: dict[str, pl.Expr] = {
    "cycles": pl.col("cycle") * 0 + 1,
    "bins": pl.col("committed"),
    "commits": pl.col("committed"),
    "accepts": pl.col("accepts") - pl.col("accepts").shift(1, fill_value=0),
    "rejects": pl.col("rejects") - pl.col("rejects").shift(1, fill_value=0),
}
"""What one close adds to a count. How many trainers have taken part is no sum, and is a fact."""
TOOK = pl.col("_t_ns") - pl.col("_t_ns").shift(1, fill_value=0)


def compare_at_common_instant(pair: Pair, window: Window, told: Told) -> Finding:
    """Equality (exact), or the largest relative difference of the counts, one event allowed (fidelity)."""
    clock = "stamp_ns" if pair.exact else "_t_ns"
    instant = min((last for run in pair.runs if (last := _last(run, window, clock)) is not None), default=None)
    if instant is None:
        return skipped("no close has a clock")
    rounds = [run.rounds.filter(pl.col(clock) <= instant) for run in pair.runs]
    real, sim = map(told, rounds)
    where = f"at {'stamp' if pair.exact else 'clock'} {instant / 1e9:.3f} s"
    if pair.exact:
        finding = equal("counts", real, sim)
        counts = ", ".join(f"{name} {count}" for name, count in real.items())
        return replace(finding, reason=f"{where}: {counts}") if finding.ok else finding
    apart = {name: abs(real[name] - sim[name]) for name in real}
    effects = {name: max(gap - 1, 0) / max(real[name], 1) for name, gap in apart.items()}
    worst = max(effects, key=lambda name: effects[name])
    text = f"{where}: {worst} real {real[worst]}, sim {sim[worst]}"
    if worst in ADDED and all(frame.height for frame in rounds):
        return measured(replace(_chance(worst, *rounds), effect=effects[worst]), reason=text)
    verdict = passed if effects[worst] <= TOL else failed
    return verdict(text, effect=effects[worst], tol=TOL, n=max(real[worst], 1))


def _chance(name: str, real: pl.DataFrame, sim: pl.DataFrame) -> Measure:
    """What chance makes of a count: its rate relative to the common one, close by close."""
    sides = [(_each(frame, ADDED[name]), _each(frame, TOOK)) for frame in (real, sim)]
    added, took = (sum(float(side[place].sum()) for side in sides) for place in (0, 1))
    rate = added / took if added and took else 1.0
    one, two = ((more - rate * time) / (rate * float(time.mean()) or 1.0) for more, time in sides)
    return mean(one, two, TOL, name=name)


def _each(rounds: pl.DataFrame, value: pl.Expr) -> NDArray[np.float64]:
    """The value of each close."""
    return rounds.select(value=value.cast(pl.Float64))["value"].to_numpy()


def _last(run: Run, window: Window, clock: str) -> int | None:
    """The last close of the run, within the window where something from outside has limited it."""
    rounds = window.in_cycles(run.rounds) if window.limited else run.rounds
    last = rounds[clock].drop_nulls()
    return int(last[-1]) if last.len() else None
