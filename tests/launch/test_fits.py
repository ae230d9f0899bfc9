"""The rule *Fits*, against a brute-force simulation of earliest-deadline-first."""

from heapq import heappop, heappush
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.config import Condition
from flame.core.time import seconds
from flame.launch.preflight.fits import LOAD, first_late, fit

DELAYS = st.lists(st.integers(1, 60), min_size=1, max_size=12)


def simulate(deadlines: list[int], compute: int, cores: int) -> list[int]:
    """Ends of jobs that are all there at 0, each free core taking the one that is due first; in order of deadlines."""
    waiting, free, ends = sorted(deadlines), [0] * cores, []
    for _ in waiting:
        end = heappop(free) + compute
        heappush(free, end)
        ends.append(end)
    return ends


@given(DELAYS, st.integers(1, 20), st.integers(1, 4))
def test_the_rule_is_what_the_simulation_finds(delays: list[int], compute: int, cores: int) -> None:
    ends = simulate(delays, compute, cores)
    missed = [(delay, end) for delay, end in zip(sorted(delays), ends, strict=True) if end > delay]
    assert first_late(delays, compute, cores, len(delays)) == (missed[0] if missed else None)


@given(st.lists(st.integers(1, 12), min_size=1, max_size=6), st.integers(1, 4), st.integers(1, 3))
def test_no_other_order_would_do_where_this_one_fails(delays: list[int], compute: int, cores: int) -> None:
    some_order_fits = any(
        all((place // cores + 1) * compute <= delay for place, delay in enumerate(order)) for order in permutations(delays)
    )
    assert (first_late(delays, compute, cores, len(delays)) is None) == some_order_fits


@given(DELAYS, st.integers(1, 20), st.integers(1, 4), st.integers(1, 12))
def test_the_fastest_cohort_is_the_hardest(delays: list[int], compute: int, cores: int, cohort: int) -> None:
    if first_late(delays, compute, cores, cohort) is None:
        for start in range(len(delays)):
            other = sorted(delays)[start : start + cohort]
            assert first_late(other, compute, cores, len(other)) is None


def condition(**changes: object) -> Condition:
    """Four trainers, all of them in each cycle."""
    plain = {"trainers": 4, "goal": 4, "concurrency": 4, "delays": {"values": [1, 2, 4, 8]}, "stop": {"cycles": 5}}
    return Condition.model_validate(plain | changes)


def test_the_load_is_compute_over_delay_and_the_evaluations() -> None:
    found = fit(condition(eval={"every": 2}), workers=2, cores=2, gradient_s=0.1, evaluate_s=0.8)
    assert found.load == pytest.approx(0.1 * (1 + 1 / 2 + 1 / 4 + 1 / 8) + 0.8 / (8 * 2))
    assert found.room == pytest.approx(2 * LOAD)
    assert found.ok


def test_an_asynchronous_cycle_lasts_as_long_as_its_accepts() -> None:
    found = fit(condition(loop="async", goal=2), 2, 2, 0.0, 0.3)
    assert found.load == pytest.approx(0.3 * (1 + 1 / 2 + 1 / 4 + 1 / 8) / 2)


def test_no_evaluation_takes_no_load() -> None:
    assert fit(condition(eval={"every": 0}), 2, 2, 0.0, 100.0).load == 0


def test_too_much_load_is_refused_though_every_deadline_is_met() -> None:
    found = fit(condition(delays={"values": [1, 1, 1, 1]}), 1, 1, 0.2, 0.0)
    assert (found.late, found.ok) == (None, False)
    assert "0.80 of at most 0.70 cores" in str(found)


def test_a_missed_deadline_is_named() -> None:
    found = fit(condition(delays={"values": [1, 1, 1, 1]}), 2, 2, 0.6, 0.0)
    assert found.late == (1.0, 1.2)
    assert "D = 1 s would end after 1.2 s" in str(found)


def test_workers_beyond_the_cores_help_nothing() -> None:
    tight = condition(delays={"values": [1, 1, 1, 1]})
    assert fit(tight, 4, 2, 0.6, 0.0).late == (1.0, 1.2)
    assert fit(tight, 4, 4, 0.6, 0.0).late is None


def test_trainers_are_dealt_to_workers_in_turn() -> None:
    """Both fast ones on one worker: a queue over two cores would do, that worker's doesn't."""
    unlucky = condition(delays={"values": [1, 9, 1, 9]})
    assert first_late([seconds(1), seconds(9), seconds(1), seconds(9)], seconds(0.6), 2, 4) is None
    assert fit(unlucky, 2, 2, 0.6, 0.0).late == (1.0, 1.2)


def test_sizes_that_may_change_are_held_against_the_largest_c_and_the_shortest_cycle() -> None:
    """K in 1..4, C = K: four slots at most; a synchronous cycle of the fastest alone lasts 1 s."""
    dynamic = condition(goal=2, concurrency=2, sizes={"type": "var_tracking", "goal_min": 1, "goal_max": 4})
    found = fit(dynamic, workers=2, cores=2, gradient_s=0.1, evaluate_s=0.8)
    assert found.load == pytest.approx(0.1 * (1 + 1 / 2 + 1 / 4 + 1 / 8) + 0.8 / 1)


def test_the_load_is_that_of_the_sizes_whose_cycles_are_shortest() -> None:
    """Asynchronous, C = 2 K: of K = 1, C = 2 a cycle lasts 1 / (1 + 1/2), of K = 2, C = 4 it lasts 2 / (1 + 1/2 + 1/4 + 1/8)."""
    dynamic = condition(loop="async", goal=1, concurrency=2, sizes={"type": "var_tracking", "goal_min": 1, "goal_max": 2})
    assert fit(dynamic, 2, 2, 0.0, 0.3).load == pytest.approx(0.3 * (1 + 1 / 2))
