"""Pairs of random conditions: none differs, none is stuck, and every rule that is removed is caught.

The study of a thousand conditions is `python -m tests.determinism.study`; here are as many as fit in
a test, and the checks that they reach what they are there for.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import pairwise
from random import Random

import pytest

from flame.core.time import MILLISECOND
from flame.telemetry.records import Accepted, AggEval, AggRound, Intrusion, Peer

from .conditions import random_condition
from .jitter import ROUGH, World
from .mutants import MUTANTS, Mutant
from .mutants_of_sizes import SIZES, WILD
from .study import Tally, is_stuck, live, resized, run_pairs, simulate
from .trace import Trace, difference, faults_of_sizes, faults_of_slots

ENDS = {"COMPLETED", "CONVERGED", "STALLED", "DID_NOT_CONVERGE", "STARVED"}
PAIRS = 150
MOST = 400
"""Conditions that are tried until a mutant is caught; most are caught at once."""


@cache
def pairs() -> Tally:
    return run_pairs(range(PAIRS))


@cache
def simulated() -> list[Trace]:
    return [simulate(random_condition(seed)) for seed in range(PAIRS)]


# ---- with all the rules


def test_both_worlds_do_the_same() -> None:
    tally = pairs()
    assert (tally.unequal, tally.stuck, tally.second, tally.sizes, tally.raised) == (0, 0, 0, 0, 0), "\n".join(tally.examples)


def test_both_worlds_do_the_same_whatever_k_and_c_are_in_each_cycle() -> None:
    tally = run_pairs(range(60), WILD)
    assert (tally.unequal, tally.stuck, tally.second, tally.sizes, tally.raised) == (0, 0, 0, 0, 0), "\n".join(tally.examples)
    assert tally.counts["resized"] > 300


@pytest.mark.parametrize("seed", range(0, PAIRS, 5))
def test_no_result_hangs_on_ties_or_on_the_codec(seed: int) -> None:
    plain = simulated()[seed]
    for ties in range(2):
        assert difference(plain, simulate(random_condition(seed), ties=Random(ties))) is None
    assert difference(plain, simulate(random_condition(seed), wire_roundtrip=True)) is None


def test_the_faults_were_there() -> None:
    counts = pairs().counts
    for what in (
        *("lost assign", "lost update", "lost beat", "lost presence", "twice assign", "twice update", "twice presence"),
        *("crash", "hang", "stick", "cut", "cut_aggregator", "broker", "overruns", "silent", "noted respawn"),
        *("again assign", "again update", "again weights", "noted duplicate", "noted reconnected"),
    ):
        assert counts[what] > 0, what


def test_the_conditions_reach_what_the_rules_speak_of() -> None:
    traces = simulated()
    assert {trace.verdict for trace in traces} == ENDS
    closes = [close for trace in traces for close in trace.of(AggRound)]
    assert {close.reason for close in closes} == {"goal", "natural", "plateau", "cap", "pool_size", "n_eff", "keep"}
    rules = [random_condition(seed) for seed in range(PAIRS)]
    assert {rule.sizes.type for rule in rules} == {"static", "var_tracking"}
    assert {rule.rate.type for rule in rules} == {"constant", "fedbuff", "felix", "grad_aware"}
    assert {rule.select.type for rule in rules} == {"all", "random", "fedbuff", "oort", "async_oort"}
    judged = [update for trace in traces for update in trace.of(Accepted)]
    assert any(not update.accepted for update in judged)
    assert any(update.accepted and update.staleness > 0 for update in judged)
    assert any(trace.of(AggEval) for trace in traces)
    assert {peer.up for trace in traces for peer in trace.of(Peer)} == {True, False}
    assert {rank for trace in traces for _, rank, _, _ in trace.released} == {0, 1, 2, 3, 4, 5}
    stamps = [[key[0] for key in trace.released] for trace in traces]
    assert any(len(set(each)) < len(each) for each in stamps)
    assert all(each == sorted(each) for each in stamps)


def test_k_and_c_change_in_the_middle_of_bins_and_c_falls_below_what_is_in_flight() -> None:
    with WILD.applied():
        wild = [simulate(random_condition(seed)) for seed in range(40)]
    assert sum(resized(trace) > 0 for trace in simulated()) > PAIRS // 8
    for traces in (simulated(), wild):
        pairs = [pair for trace in traces for pair in pairwise(trace.of(AggRound))]
        assert any(one.goal != other.goal and not one.committed for one, other in pairs)
        assert any(one.goal < other.goal for one, other in pairs)
        assert any(one.in_flight > other.concurrency for one, other in pairs)


def test_no_accept_is_left_over_at_a_close() -> None:
    """K is sampled when the cycle before has taken its K, one release at a time: a lesser K finds no surplus."""
    with WILD.applied():
        wild = [simulate(random_condition(seed)) for seed in range(40)]
    for trace in [*simulated(), *wild]:
        taken = [sum(1 for each in trace.of(Accepted) if each.accepted and each.at.cycle == close.at.cycle) for close in trace.of(AggRound)]
        assert taken == [close.goal for close in trace.of(AggRound)]


HARSH = {
    "lossy": replace(ROUGH, loss=0.25, duplicates=0.4, most=12, every=2500),
    "flapping": replace(ROUGH, loss=0.1, faults=("cut", "broker", "cut_aggregator"), most=30, every=700),
    "dying": replace(ROUGH, faults=("crash",), duplicates=0.5, most=25, every=1000),
}


@pytest.mark.parametrize("network", HARSH)
def test_the_worst_networks_change_nothing_either(network: str) -> None:
    for seed in range(PAIRS, PAIRS + 25):
        condition = random_condition(seed)
        assert difference(simulate(condition), live(condition, HARSH[network]).trace) is None, f"condition {seed}"


def test_on_a_good_network_the_wall_keeps_pace_with_the_stamps_and_nothing_overruns() -> None:
    good = replace(ROUGH, loss=0.0, duplicates=0.0, most=0, scales=(0.01,))
    for seed in range(20):
        world = live(random_condition(seed), good)
        frontier = world.trace.released[-1][0]
        assert world.counts["overruns"] == 0
        assert frontier <= world.trace.wall <= frontier + 200 * MILLISECOND


def test_a_worker_that_is_lost_for_good_is_an_intrusion_and_the_run_goes_on() -> None:
    lossy = replace(ROUGH, faults=("crash",), every=6000, respawns=0)
    traces = [live(random_condition(seed), lossy).trace for seed in range(40)]
    intruded = [trace for trace in traces if trace.of(Intrusion) and trace.released]
    assert len(intruded) > 10
    assert {"COMPLETED", "STARVED"} <= {trace.verdict for trace in intruded} <= ENDS
    assert {trace.verdict for trace in traces if not trace.released} <= {"CRASH", "STARVED"}
    assert not [fault for trace in traces for fault in faults_of_slots(trace)]


# ---- without one


@pytest.mark.parametrize("mutant", [*MUTANTS, *SIZES], ids=[mutant.name for mutant in [*MUTANTS, *SIZES]])
def test_without_the_rule_some_pair_is_caught(mutant: Mutant) -> None:
    tally = run_pairs(range(MOST), mutant, enough=2)
    assert getattr(tally, mutant.by) >= 2, f"of {tally.pairs} pairs without `{mutant.rule}`:\n{tally.row(mutant.name)}"


def test_a_goal_over_concurrency_is_harmless_while_it_is_clamped() -> None:
    over = next(mutant for mutant in MUTANTS if mutant.name == "goal_over_c")
    tally = run_pairs(range(20), over._replace(patches=[]))
    assert not tally.caught, tally


# ---- the instruments


def test_a_world_is_a_function_of_its_condition() -> None:
    runs = [live(random_condition(3)) for _ in range(2)]
    assert difference(runs[0].trace, runs[1].trace) is None
    assert runs[0].counts == runs[1].counts


def test_a_difference_names_the_place() -> None:
    ours, theirs = Trace(released=[(1, 5, "t1", 1)]), Trace(released=[(1, 5, "t1", 1), (2, 5, "t2", 2)])
    assert difference(ours, theirs) == "release 1 of 1 and 2\n  nothing\n  (2, 5, 't2', 2)"


def test_the_audit_of_sizes_finds_what_it_looks_for() -> None:
    trace = next(trace for trace in simulated() if len(trace.of(AggRound)) > 3)
    assert not list(faults_of_sizes(trace))
    close = trace.of(AggRound)[2]
    spoiled = replace(trace, decisions=[replace(each, goal=each.goal + 99) if each is close else each for each in trace.decisions])
    faults = list(faults_of_sizes(spoiled))
    assert any("over C" in fault for fault in faults)
    assert any("accepts, K" in fault for fault in faults)


def test_a_run_that_never_ends_is_stuck_and_one_that_starves_may_be() -> None:
    assert is_stuck(Trace(), doomed=True)
    assert [is_stuck(Trace(verdict="STARVED"), doomed) for doomed in (False, True)] == [True, False]
    assert not is_stuck(Trace(verdict="COMPLETED"), doomed=False)


def test_a_run_whose_trainers_are_never_heard_of_ends_and_names_them() -> None:
    world: World = live(random_condition(3), replace(ROUGH, loss=1.0, faults=("none",)))
    assert "trainers were not present after 120 s: t0, t1" in (world.trace.error or "")
