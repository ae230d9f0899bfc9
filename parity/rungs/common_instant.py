"""What K8 and U2 share: how far each run was at the last instant that both reached.

In the exact tier that is a stamp, and both must be equally far. In the fidelity tier it is an instant of the
clock (real: wall since ready, sim: vclock), and one event may have fallen on the other side of it.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

import polars as pl

from parity.compare import equal
from parity.evidence import Pair, Run, Window
from parity.rung import Finding, failed, passed, skipped

TOL = 0.05

Told = Callable[[pl.DataFrame], Mapping[str, int]]
"""Closed cycles up to the instant -> what is counted, by name."""


def compare_at_common_instant(pair: Pair, window: Window, told: Told) -> Finding:
    """Equality (exact), or a relative difference of each count, one event allowed (fidelity)."""
    clock = "stamp_ns" if pair.exact else "_t_ns"
    instant = min((last for run in pair.runs if (last := _last(run, window, clock)) is not None), default=None)
    if instant is None:
        return skipped("no close has a clock")
    real, sim = (told(run.rounds.filter(pl.col(clock) <= instant)) for run in pair.runs)
    where = f"at {'stamp' if pair.exact else 'clock'} {instant / 1e9:.3f} s"
    if pair.exact:
        finding = equal("counts", real, sim)
        counts = ", ".join(f"{name} {count}" for name, count in real.items())
        return replace(finding, reason=f"{where}: {counts}") if finding.ok else finding
    apart = {name: abs(real[name] - sim[name]) for name in real}
    effects = {name: max(gap - 1, 0) / max(real[name], 1) for name, gap in apart.items()}
    worst = max(effects, key=lambda name: effects[name])
    text = f"{where}: {worst} real {real[worst]}, sim {sim[worst]}"
    verdict = passed if effects[worst] <= TOL else failed
    return verdict(text, effect=effects[worst], tol=TOL, n=max(real[worst], 1))


def _last(run: Run, window: Window, clock: str) -> int | None:
    """The last close of the run, within the window where something from outside has limited it."""
    rounds = window.in_cycles(run.rounds) if window.limited else run.rounds
    last = rounds[clock].drop_nulls()
    return int(last[-1]) if last.len() else None
