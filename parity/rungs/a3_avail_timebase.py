"""A3: the pool is as large in each part of the run."""

from dataclasses import replace
from statistics import fmean

import polars as pl

from parity.derived.pools import selections
from parity.derived.presence import unwatched
from parity.evidence import Pair, Run, Window
from parity.measures.compare import equal
from parity.measures.statistics import mean
from parity.rung import DIST, LOGICAL, Finding, measured, rung, skipped

TOL = 0.20
BINS = 10


@rung(id="A3", name="avail_timebase", stage=2, tier=DIST, domain=LOGICAL, needs=["selection.eligible"], upstream=["A1"], over="cycles")
def avail_timebase(pair: Pair, window: Window) -> Finding:
    """The mean pool in each tenth of the common cycles agrees.

    What it checks: eligible trainers at the selections, averaged over ten equal parts of the window.
    Why: two runs that read their traces against different clocks have the same pool at the start and part from there on;
        an average over the whole run hides it.
    Reads: selection.eligible.
    Statistic: equality of the ten means (exact); their mean absolute difference, relative to real's mean; chance: that of the
        difference over all common cycles, aligned, by block permutation (fidelity).
    Tolerance: exact 0; fidelity 0.20.
    Known limits: a part in which nothing was selected in one of the runs is left out. SKIP where nobody is ever away.
    """
    nothing = unwatched(pair)
    if nothing:
        return skipped(nothing)
    frames = [_by_cycle(run, window) for run in pair.runs]
    real, sim = (_tenths(frame, window) for frame in frames)
    if pair.exact:
        return equal("parts of the run", real, sim)
    both = frames[0].join(frames[1], on="cycle", suffix="_sim", maintain_order="left")
    if not both.height or not both["eligible"].sum():
        return skipped("in no common cycle both runs had somebody to choose")
    chance = mean(both["eligible"], both["eligible_sim"], TOL, name="mean pool in ten parts", relative=True, aligned=True)
    apart = [abs(real[part] - sim[part]) for part in real if part in sim]
    return measured(replace(chance, effect=fmean(apart) / fmean(real.values())))


def _by_cycle(run: Run, window: Window) -> pl.DataFrame:
    """cycle, eligible: the mean pool of its selections."""
    return selections(run, window, "eligible").group_by("cycle").agg(pl.col("eligible").mean()).sort("cycle")


def _tenths(frame: pl.DataFrame, window: Window) -> dict[str, float]:
    """Part of the run -> the mean pool in it."""
    part = (pl.col("cycle") * BINS // window.cycles).alias("part")
    means = frame.group_by(part).agg(pl.col("eligible").mean()).sort("part")
    return {f"part {number + 1} of {BINS}": pool for number, pool in means.iter_rows()}
