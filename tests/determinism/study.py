"""The study: the project's own machines, simulated and under the fake real driver, over random conditions.

A pair is one condition in both worlds, judged by everything that the aggregator decided. With all the
rules no pair differs and none is stuck; with any rule removed some pair is caught:

  unequal  the two traces differ
  stuck    a run never ended, or starved where it doesn't with the rules
  second   a node was sent work while it held a slot, or there were more slots than C
  sizes    K or C changed in the middle of a cycle, or a cycle closed with other than K
  raised   a machine was given what it can't take

`python -m tests.determinism.study --conditions 1000` prints what was found, and what went wrong on
the way, so that it is seen that the faults were there.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from random import Random
from time import perf_counter
from typing import cast

from flame.config.condition import Condition
from flame.config.devices import profiles
from flame.core.events import StopAsked
from flame.learn.surrogate import SurrogateLearner
from flame.roles.aggregator import Aggregator
from flame.roles.trainer import Trainer
from flame.runtime.books.journal import Journal
from flame.runtime.compute.executors import Inline
from flame.runtime.sim import Simulation
from flame.telemetry.records import AggEval, AggRound
from flame.telemetry.writer import Silence

from .conditions import random_condition
from .jitter import ROUGH, Network, World
from .mutants import ALL_RULES, MUTANTS, Mutant
from .mutants_of_sizes import SIZES, WILD
from .trace import Trace, difference, faults_of_sizes, faults_of_slots

MAX_STEPS = 20_000
"""Of a simulation; one of these conditions takes some hundred."""
SPUN = "SPUN"


class _Bound:
    """Ends a simulation that goes on for ever."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    def saw(self, now: int, record: AggRound | AggEval) -> None:
        """Nobody watches."""

    def stop_asked(self) -> StopAsked | None:
        """A stop, when the steps are spent."""
        return StopAsked("too many steps", SPUN) if self._trace.seq > MAX_STEPS else None


def simulate(condition: Condition, *, wire_roundtrip: bool = False, ties: Random | None = None) -> Trace:
    """The condition in the simulated world. What is raised ends up in the trace."""
    learner, trace = SurrogateLearner(condition), Trace()
    aggregator = Aggregator(condition, learner.facts.init, learner.facts.bins)
    trainers = {node: Trainer(condition, profile) for node, profile in profiles(condition).items()}
    simulation = Simulation(
        aggregator, trainers, Inline(learner), cast(Journal, trace), Silence(),
        watcher=_Bound(trace), wire_roundtrip=wire_roundtrip, ties=ties,
    )  # fmt: skip
    try:
        simulation.run()
    except Exception as error:  # without a rule anything may break, and has then been caught
        trace.error = None if "heap ran empty" in str(error) else f"{type(error).__name__}: {error}"
    return trace


def live(condition: Condition, network: Network = ROUGH) -> World:
    """The condition in the fake real world, run to its end."""
    world = World(condition, SurrogateLearner(condition), network)
    world.run()
    return world


@cache
def starves(seed: int, change: Callable[[Condition], Condition]) -> bool:
    """Whether a condition starves with all the rules: some are doomed."""
    return simulate(change(random_condition(seed))).verdict == "STARVED"


def is_stuck(trace: Trace, doomed: bool) -> bool:
    """It never ended, and wasn't ended by what it raised; or it starved without need."""
    if trace.verdict == "STARVED":
        return not doomed
    return trace.verdict == SPUN or (trace.verdict is None and trace.error is None)


def resized(trace: Trace) -> int:
    """How often K or C was another than in the cycle before."""
    sizes = [(record.goal, record.concurrency) for record in trace.of(AggRound)]
    return sum(one != other for one, other in pairwise(sizes))


@dataclass
class Tally:
    """What became of a number of pairs. examples: the first difference of some."""

    pairs: int = 0
    unequal: int = 0
    stuck: int = 0
    second: int = 0
    sizes: int = 0
    raised: int = 0
    verdicts: Counter[str | None] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)

    def add(self, seed: int, sim: Trace, real: Trace, doomed: bool) -> None:
        """Judge a pair. doomed: it starves with all the rules."""
        differ = difference(sim, real)
        self.pairs += 1
        self.unequal += differ is not None
        self.stuck += is_stuck(sim, doomed) or is_stuck(real, doomed)
        self.second += any(True for trace in (sim, real) for _ in faults_of_slots(trace))
        self.sizes += any(True for trace in (sim, real) for _ in faults_of_sizes(trace))
        self.raised += any(trace.error is not None for trace in (sim, real))
        self.verdicts[real.verdict] += 1
        if differ is not None and len(self.examples) < 3:
            self.examples.append(f"condition {seed}: {differ}")

    @property
    def caught(self) -> int:
        """How often, at the most by one kind."""
        return max(self.unequal, self.stuck, self.second, self.sizes, self.raised)

    def row(self, name: str) -> str:
        """One line of the table."""
        return f"{name:24}{self.pairs:7}{self.unequal:9}{self.stuck:7}{self.second:8}{self.sizes:7}{self.raised:8}"


def run_pairs(seeds: Iterable[int], mutant: Mutant = ALL_RULES, *, enough: int | None = None) -> Tally:
    """Run the conditions in both worlds, until `enough` pairs were caught by what the mutant is caught by."""
    tally = Tally()
    for seed in seeds:
        condition, doomed = mutant.change(random_condition(seed)), mutant.dooms or starves(seed, mutant.change)
        with mutant.applied():
            sim, world = simulate(condition), live(condition)
        tally.add(seed, sim, world.trace, doomed)
        tally.counts.update(world.counts)
        tally.counts.update(resized=resized(sim))
        tally.counts.update(steps=sim.seq, wall=world.trace.wall // 10**9, stamps=sim.wall // 10**9)
        if enough and getattr(tally, mutant.by) >= enough:
            break
    return tally


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="pairs of random conditions, with all the rules and without each")
    parser.add_argument("--conditions", type=int, default=1000)
    parser.add_argument("--per-rule", type=int, default=120)
    options = parser.parse_args()
    print(f"{'':24}{'pairs':>7}{'unequal':>9}{'stuck':>7}{'second':>8}{'sizes':>7}{'raised':>8}")
    started = perf_counter()
    tally = run_pairs(range(options.conditions))
    print(tally.row(ALL_RULES.name), f"   {perf_counter() - started:.0f} s")
    for example in tally.examples:
        print(example)
    print(run_pairs(range(options.conditions // 4), WILD).row(WILD.name), flush=True)
    print("verdicts:", ", ".join(f"{name} {count}" for name, count in tally.verdicts.most_common()))
    print("on the way:", ", ".join(f"{name} {count}" for name, count in sorted(tally.counts.items())))
    for mutant in [*MUTANTS, *SIZES] if options.per_rule else []:
        tally = run_pairs(range(options.per_rule), mutant)
        print(tally.row(mutant.name), f"   without: {mutant.rule}", flush=True)
    print(f"{perf_counter() - started:.0f} s in all")


if __name__ == "__main__":
    main()
