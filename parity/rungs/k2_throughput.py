"""K2: both runs get on equally fast, each by its own clock."""

from dataclasses import replace

import polars as pl

from parity.derived.advance import clock
from parity.evidence import Pair, Run, Window
from parity.measures.statistics import mean
from parity.rung import DIST, PHYSICAL, Finding, measured, rung, skipped

TOL = 0.05
LEAST_S = 60.0


@rung(
    id="K2",
    name="throughput",
    stage=1,
    tier=DIST,
    domain=PHYSICAL,
    needs=["agg_round.clock"],
    upstream=["K3"],
    over="cycles",
)
def throughput(pair: Pair, window: Window) -> Finding:
    """Closes per wall second of the real run are closes per virtual second of the sim.

    What it checks: the clock at the last common close, over the number of closes up to there.
    Why: it is what a user reads off a simulation: how long the same would take for real.
    Reads: agg_round.wall_s (real), vclock_ns (sim).
    Statistic: relative difference of the two rates; chance: block permutation of the advances per cycle, aligned.
    Tolerance: 0.05, over 60 s of each clock or more.
    Known limits: in less than 60 s the start of the processes and one late update weigh too much: SKIP.
    """
    spans = {run.side: _seconds(run, window) for run in pair.runs}
    text = f"{window.cycles} closes in {spans['real']:.1f} s of wall and {spans['sim']:.1f} s of virtual time"
    if min(spans.values()) < LEAST_S:
        return skipped(f"{text}, needs {LEAST_S:.0f} s", n=window.cycles)
    effect = abs(spans["real"] / spans["sim"] - 1)
    real, sim = (_advances(run, window) for run in pair.runs)
    return measured(replace(mean(real, sim, TOL, name="rate", relative=True, aligned=True), effect=effect), reason=text)


def _advances(run: Run, window: Window) -> pl.Series:
    """Seconds of its own clock between the common closes."""
    return window.in_cycles(run.rounds.select("cycle", advance=clock(run) - clock(run).shift(1, fill_value=0.0)))["advance"]


def _seconds(run: Run, window: Window) -> float:
    last = window.in_cycles(run.rounds).select(at=clock(run).cast(pl.Float64))["at"].max()
    return last if isinstance(last, float) else 0.0
