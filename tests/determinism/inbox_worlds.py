"""The two worlds that the inbox is tried in, the random conditions, and the table of rules.

A world owns what the machine must not: the clock (a heap), the links, the trainers' computing. The
simulated world is the one whose links are `QUIET`; the real one's have jitter, slow computes and
evals, loss and duplicates. Both run the same machine on the same condition, and a pair of runs is
judged by the machines' logs, which hold every release and every decision with its stamp, and leave
out `now`. `python -m tests.determinism.inbox_worlds` prints what each rule is good for.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from enum import Enum, auto
from functools import cache

from .inbox_machine import Aggregator, Line
from .inbox_model import (
    NEVER,
    Arrived,
    Assign,
    Awareness,
    Condition,
    Effect,
    Evaluate,
    Event,
    Name,
    Noted,
    Overdue,
    Rank,
    Rules,
    Send,
    SetTimer,
    Staleness,
)

ALL = Rules()
MAX_STEPS = 5_000  # a run takes some hundred; one that spins ends here, and counts as stuck


@dataclass(frozen=True)
class Network:
    """How far a world is from ideal. Legs and computes are drawn up to one of the bounds given."""

    legs: tuple[int, ...] = (0,)
    computes: tuple[int, ...] = (0,)
    evals: int | None = None  # None: exactly as modelled
    loss: float = 0.0
    duplicates: float = 0.0
    resend: int = 3000
    grace: int = 2000


QUIET = Network()
ROUGH = Network(legs=(1, 5, 5, 20, 200, 1500), computes=(0, 0, 0, 3000), evals=9000)
REAL = replace(ROUGH, loss=0.05, duplicates=0.1)


class World:
    """One run: the machine, its heap of events to come, and the trainers it hears of."""

    def __init__(self, condition: Condition, rules: Rules, network: Network) -> None:
        self.condition, self.rules, self.network = condition, rules, network
        self.machine = Aggregator(condition, rules)
        self.rng = random.Random(condition.seed)
        self.heap: list[tuple[int, int, Event]] = []
        self.serial = 0  # first come first served among events of one instant
        self.busy_until = dict.fromkeys(condition.delay, 0)

    def run(self) -> Aggregator:
        self._plan()
        self._do(0, self.machine.begin())
        for _ in range(MAX_STEPS):
            if self.machine.stopped or not self.heap:
                break
            now, _, event = heapq.heappop(self.heap)
            self._do(now, self.machine.step(now, event))
        return self.machine

    def _plan(self) -> None:
        """What happens whatever the machine does: peers come and go, and say when they are away.

        A fault is reported, not simulated: a trainer that dies still answers here, so that what was
        due before its fault does arrive, and what is due later finds its row voided.
        """
        for rank, planned in (Rank.JOIN, self.condition.joins), (Rank.FAULT, self.condition.faults):
            for node, stamp in planned.items():
                self._put(stamp + self._leg(), Arrived(Name(rank, node, 0)))
        for node, toggles in self.condition.trace.items():
            for stamp in toggles:
                state = self.condition.available(node, stamp)
                self._put(stamp + self._leg(), Noted(node, state))

    def _do(self, now: int, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Send(assign):
                    self._send(now, assign)
                case SetTimer(row):
                    # Never before its stamp, so that the frontier doesn't lead the wall.
                    self._put(max(now, row.stamp) + self._leg(), Arrived(row.name))
                case Evaluate(row):
                    took = self.network.evals
                    done = row.stamp if took is None else now + self.rng.randint(0, took)
                    self._put(done, Arrived(row.name))

    def _send(self, now: int, assign: Assign) -> None:
        """Trainer and session layer in one: compute serially, hold until due, send until heard."""
        if assign.due == NEVER:
            return
        received = now + self._leg()
        finished = max(received, self.busy_until[assign.node]) + self._upto(self.network.computes)
        self.busy_until[assign.node] = finished
        not_before = received + assign.due - now  # no host's clock is compared with another's
        update = Arrived(Name(Rank.UPDATE, assign.node, assign.id), assign)
        self._put(max(now, assign.due) + self.network.grace, Overdue(update.name))
        self._answer(max(finished, not_before), update)

    def _answer(self, leaves: int, update: Arrived) -> None:
        """Deliver end to end: each lost try costs a resend, and a resend may cross the answer."""
        arrives = leaves + self._leg()
        while self.rng.random() < self.network.loss:
            if not self.rules.open_is_resent:
                return
            arrives += self.network.resend
        self._put(arrives, update)
        if self.rng.random() < self.network.duplicates:
            self._put(arrives + self.rng.randint(0, 2 * self.network.resend), update)

    def _leg(self) -> int:
        return self._upto(self.network.legs)

    def _upto(self, bounds: tuple[int, ...]) -> int:
        return self.rng.randint(0, self.rng.choice(bounds))

    def _put(self, at: int, event: Event) -> None:
        self.serial += 1
        heapq.heappush(self.heap, (at, self.serial, event))


class Arm(Enum):
    """Which loop: refill at once, dispatch by cohorts, or refill behind a gate."""

    ASYNC = auto()
    SYNC = auto()
    GATED = auto()


@cache
def random_condition(arm: Arm, seed: int) -> Condition:
    """Ten trainers that leave and return; two join late, two die, up to two leave for good."""
    rng = random.Random(f"{arm.name} {seed}")
    nodes = tuple(f"t{i:02}" for i in range(10))
    old, late = nodes[:8], nodes[8:]
    trace = {node: sorted(rng.sample(range(1000, 60_000, 500), 8)) for node in nodes}
    for leaver in rng.sample(old, rng.randint(0, 2)):
        trace[leaver] = trace[leaver][:3]
    sync, gated = arm is Arm.SYNC, arm is Arm.GATED or (arm is Arm.SYNC and seed % 2 == 0)
    return Condition(
        seed=seed,
        start=old,
        delay={node: rng.choice([200, 500, 500, 1000, 2500]) for node in nodes},
        trace={node: tuple(toggles) for node, toggles in trace.items()},
        joins={node: rng.randrange(1000, 9000, 500) for node in late},
        faults={node: rng.randrange(2000, 30_000, 500) for node in rng.sample(old, 2)},
        awareness=rng.choice(list(Awareness)),
        sync=sync,
        staleness=rng.choice([Staleness.EXACT, Staleness.SAME_BIN]) if sync else Staleness.ACCEPT,
        threshold=rng.choice([0, 30, 60]) if gated else None,
        cap=4,
        goals=(2, 5),
        concurrencies=(3, 5) if sync else (3, 7),
        abandon=rng.choice([2000, 2000, 2000, None]),
        eval_time=rng.choice([0, 700, 2500]),
        eval_blocks=rng.random() < 0.5,
        commits=10 if gated else 20,
        budget=rng.choice([20_000, 60_000, None]),
    )


@dataclass(frozen=True)
class Tally:
    """What became of a number of pairs of runs."""

    pairs: int = 0
    reordered: int = 0  # pairs whose released sequences differ
    unequal: int = 0  # pairs whose decisions differ
    stuck: int = 0  # pairs in which a run never ended, or ended because it can't advance
    second: int = 0  # pairs in which a node was sent work while it had an open row
    voided: int = 0  # rows given up in the real runs

    def add(self, sim: Aggregator, real: Aggregator) -> Tally:
        return Tally(
            self.pairs + 1,
            self.reordered + differ(sim, real, released),
            self.unequal + differ(sim, real, decided),
            self.stuck + (is_stuck(sim) or is_stuck(real)),
            self.second + any(m.counts["second dispatch"] for m in (sim, real)),
            self.voided + real.counts["voided"],
        )

    @property
    def caught(self) -> bool:
        return bool(self.unequal or self.stuck or self.second)


def is_stuck(machine: Aggregator) -> bool:
    return machine.stopped in (None, "cannot advance", "nothing accepted")


def released(machine: Aggregator) -> list[Line]:
    return [line for line in machine.log if line.what == "released"]


def decided(machine: Aggregator) -> list[Line]:
    return [line for line in machine.log if line.what != "released"]


def differ(sim: Aggregator, real: Aggregator, part: Callable[[Aggregator], list[Line]]) -> bool:
    """Do the logs differ? Of two runs that spun until cut off, as far as both went."""
    ours, theirs = part(sim), part(real)
    if sim.stopped is None and real.stopped is None:
        common = min(len(ours), len(theirs))
        ours, theirs = ours[:common], theirs[:common]
    return ours != theirs


def run(condition: Condition, rules: Rules = ALL, network: Network = QUIET) -> Aggregator:
    """Run the machine to its end in a world with these links."""
    return World(condition, rules, network).run()


def run_pairs(arm: Arm, pairs: int, rules: Rules = ALL, network: Network = REAL) -> Tally:
    """Run the first so many conditions of an arm, each in both worlds."""
    tally = Tally()
    for seed in range(pairs):
        condition = random_condition(arm, seed)
        tally = tally.add(run(condition, rules), run(condition, rules, network))
    return tally


def without(rule: str) -> Rules:
    return replace(ALL, **{rule: False})


def print_table(pairs: int = 120) -> None:
    """Per rule dropped and per arm: unequal / stuck / second dispatch."""
    print(f"of {pairs} pairs: unequal / stuck / second dispatch")
    print(f"{'rule dropped':28}" + "".join(f"{arm.name.lower():>16}" for arm in Arm))
    for rule in ["", *(field.name for field in fields(Rules))]:
        tallies = [run_pairs(arm, pairs, without(rule) if rule else ALL) for arm in Arm]
        cells = [f"{t.unequal:3} / {t.stuck:3} / {t.second:3}" for t in tallies]
        print(f"{rule or '(none)':28}" + "".join(f"{cell:>16}" for cell in cells), flush=True)


if __name__ == "__main__":
    print_table()
