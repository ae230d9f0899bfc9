"""What chance makes of numbers that are a function of the traces and of the stamps of the closes, and of nothing else.

Where trainers are at a close is no sample: the traces are given. What is left to chance is when the closes were, and runs
of one law drift apart in that. So such a number is held against the block permutation of the advances from close to close:

- of the time in a state up to the last close (`of_span`): a run that takes a share x longer has shares of time that differ
  by less than x, so the critical value of the relative advance bounds theirs;
- of the states at the closes (`of_lead`): who is ahead by a lead meets as many other states as change meanwhile, so the
  critical value is the mean lead over the closes times the changes per second of a trainer.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from flame.core.trace import Trace
from parity.evidence import Pair, Run, Window
from parity.measures.statistics import mean
from parity.rung import Measure


def of_span(pair: Pair, window: Window, effect: float, tol: float, name: str) -> Measure:
    """`effect` with the chance of the mean advance. Raises ValueError where no common close has a stamp."""
    real, sim = (_advances(run, window) for run in pair.runs)
    return replace(mean(real, sim, tol, name=name, relative=True, aligned=True), effect=effect)


def of_lead(pair: Pair, window: Window, effect: float, tol: float, name: str, traces: Sequence[Trace]) -> Measure:
    """`effect` with the chance of the mean lead over the closes. Raises ValueError where no common close has a stamp."""
    real, sim = (_advances(run, window) for run in pair.runs)
    left = np.arange(real.len(), 0, -1) * _changes_per_s(traces, float(max(real.sum(), sim.sum())))
    return replace(mean(real.to_numpy() * left, sim.to_numpy() * left, tol, name=name, aligned=True), effect=effect)


def _advances(run: Run, window: Window) -> pl.Series:
    """Seconds of stamps from one common close to the next."""
    stamps = window.in_cycles(run.rounds)["stamp_ns"].drop_nulls() / 1e9
    return stamps - stamps.shift(1, fill_value=0.0)


def _changes_per_s(traces: Sequence[Trace], seconds: float) -> float:
    """How often a trainer's state changes."""
    end = seconds * 1e9
    changes = sum(sum(0 < instant < min(end, trace.period or end) for instant in trace.instants) for trace in traces)
    lasting = sum(min(end, trace.period or end) for trace in traces)
    return 1e9 * changes / lasting if lasting else 0.0
