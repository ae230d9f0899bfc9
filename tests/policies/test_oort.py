"""Oort's rule: each term by hand, the whole against a naive model of it, draws by their distribution."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import permutations
from math import inf, log, sqrt
from pathlib import Path
from random import Random as Ties
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from scipy.stats import chisquare

from flame.config import Condition
from flame.config.devices import profiles
from flame.core.progress import Progress
from flame.core.rng import derive
from flame.learn.learner import build
from flame.policies.select import AsyncOort, FedBuff, Oort, Random, SelectView
from flame.policies.select.draw import drawn
from flame.policies.select.oort import Preferred, State, bounds_of, preferred_duration
from flame.policies.select.pacer import Pacer, Pacing, exploiting, paced
from flame.roles.aggregator import Aggregator
from flame.roles.trainer import Trainer
from flame.runtime.books.journal import Journal
from flame.runtime.books.replay import replay
from flame.runtime.compute.executors import Inline
from flame.runtime.sim import Simulation
from flame.telemetry.records import Score, Selection
from flame.telemetry.writer import Silence
from tests.determinism.digests import condition, digest, simulate
from tests.determinism.trace import Trace, difference, faults_of_slots


@dataclass
class Node:
    """What a roster knows of a node."""

    duration: int = 1
    utility: float = 0.0
    last: int = 0
    count: int = 0


def seen(utility: float, *, last: int = 0, duration: int = 1, count: int = 1) -> Node:
    return Node(duration, utility, last, count)


def view(nodes: dict[str, Node], *, cycle: int = 0, free: Sequence[str] | None = None, ordinal: int = 0, seed: int = 1) -> SelectView:
    unexplored = sum(node.count == 0 for node in nodes.values())
    return SelectView(list(nodes) if free is None else free, Progress(cycle=cycle), seed, ordinal, nodes, unexplored)


def scores(policy: Oort, nodes: dict[str, Node], cycle: int = 0, preferred: float = inf) -> dict[str, Score]:
    """Of the explored ones."""
    return policy.rated(view(nodes, cycle=cycle), preferred)[0]


class TestScore:
    """((min(U, clip) - min) / range + sqrt(0.1 ln R / L)) (T / t)^2"""

    def test_utility_is_measured_from_a_little_under_the_smallest(self) -> None:
        rated = scores(Oort(), {"a": seen(10.0), "b": seen(20.0), "c": seen(30.0)})
        # min 9.99, range 20.01; in cycle 1 there is no uncertainty, ln 1 = 0
        assert rated["a"].utility == pytest.approx(0.01 / 20.01)
        assert rated["b"].utility == pytest.approx(10.01 / 20.01)
        assert rated["c"].utility == 1.0
        assert {each.score for each in rated.values()} == {each.utility for each in rated.values()}

    @pytest.mark.parametrize(("clip", "highest"), [(0.98, 99.0), (0.95, 96.0), (0.9, 91.0), (0.0, 1.0), (1.0, 100.0)])
    def test_utility_is_clipped_at_a_percentile_and_the_range_is_not(self, clip: float, highest: float) -> None:
        rated = scores(Oort(clip=clip), {f"t{value:03}": seen(float(value)) for value in range(1, 101)})
        assert rated["t100"].utility == pytest.approx((highest - 0.999) / (100 - 0.999))

    def test_bounds_of_few_and_of_none(self) -> None:
        assert bounds_of([2.0], 0.98) == pytest.approx((1.998, 2.0, 0.002))
        assert bounds_of([0.01], 0.98) == pytest.approx((0.00999, 0.01, 1e-4))  # the range is never less
        assert bounds_of([], 0.98) == (0.0, 0.0, 1e-4)

    def test_a_utility_of_nothing_sets_no_bounds(self) -> None:
        rated = scores(Oort(), {"a": seen(0.0), "b": seen(10.0), "c": seen(20.0)})
        assert rated["c"].utility == 1.0
        assert rated["a"].utility == pytest.approx(-9.99 / 10.01)

    def test_uncertainty_grows_with_the_cycle_and_falls_with_the_last_participation(self) -> None:
        rated = scores(Oort(), {"a": seen(1.0, last=0), "b": seen(1.0, last=3), "c": seen(1.0, last=8)}, cycle=9)
        assert rated["a"].uncertainty == pytest.approx(sqrt(0.23025850929940458))  # R = 10, L = 1
        assert rated["b"].uncertainty == pytest.approx(sqrt(0.23025850929940458 / 4))
        assert rated["c"].uncertainty == pytest.approx(sqrt(0.23025850929940458 / 9))
        assert rated["b"].score == pytest.approx(1.0 + 0.23992629560)

    @pytest.mark.parametrize(("duration", "factor"), [(5, 1.0), (10, 1.0), (11, 100 / 121), (20, 0.25), (100, 0.01)])
    def test_the_penalty_binds_over_the_preferred_duration(self, duration: int, factor: float) -> None:
        rated = scores(Oort(), {"a": seen(5.0, duration=duration), "b": seen(9.0)}, cycle=6, preferred=10.0)
        assert rated["a"].penalty == pytest.approx(factor)
        expected = (0.005 / 4.005 + sqrt(0.1 * log(7))) * factor
        assert rated["a"].score == pytest.approx(expected)

    def test_the_penalty_has_an_exponent_and_can_be_none(self) -> None:
        nodes = {"a": seen(5.0, duration=20)}
        assert scores(Oort(penalty=3), nodes, preferred=10.0)["a"].penalty == 0.125
        assert scores(Oort(penalty=0), nodes, preferred=10.0)["a"].penalty == 1.0
        assert scores(Oort(), nodes, preferred=inf)["a"].penalty == 1.0

    def test_the_unexplored_have_an_initial_reward_and_the_penalty(self) -> None:
        known, fresh = Oort().rated(view({"a": Node(20), "b": Node(10), "c": seen(1.0)}), 10.0)
        assert list(known) == ["c"]
        assert fresh == {"a": Score("a", "explore", 0.25, None, None, 0.25), "b": Score("b", "explore", 1.0, None, None, 1.0)}


class TestPreferredDuration:
    """T is a percentile over everybody, the busy ones too."""

    @pytest.mark.parametrize(("percentile", "duration"), [(30, 4.0), (29.9, 3.0), (5, 1.0), (95, 10.0), (99.9, 10.0), (100, inf)])
    def test_of_ten(self, percentile: float, duration: float) -> None:
        nodes = {f"t{value}": Node(value) for value in (7, 3, 10, 1, 2, 9, 8, 4, 6, 5)}
        assert preferred_duration(nodes, percentile, Preferred()) == (10, percentile, duration)

    def test_it_is_kept_until_somebody_joins_or_the_pacer_moves(self) -> None:
        before = Preferred(1, 30.0, 77.0)
        assert preferred_duration({"a": Node(5)}, 30.0, before) is before
        assert preferred_duration({"a": Node(5), "b": Node(6)}, 30.0, before).duration == 5.0
        assert preferred_duration({"a": Node(5)}, 35.0, before).duration == 5.0

    def test_busy_nodes_count(self) -> None:
        nodes = {"a": Node(1), "b": Node(2), "c": Node(8), "d": Node(8)}
        _, state = Oort().choose(view(nodes, free=["c", "d"]), 1, None)
        assert state.preferred.duration == 2.0
        assert state.scores[0].penalty == (2 / 8) ** 2


class TestPacer:
    """Windows of 20 cycles, judged from the 40th on."""

    pacing = Pacing(20, 5.0)

    def judged(self, before: float, now: float, *, percentile: float = 30.0, at: int = 40, cycle: int = 39) -> float:
        gains = ((at - 21, before), (at - 20, now))  # the last cycle of one window, the first of the next
        return paced(Pacer(percentile, cycle, (), gains), self.pacing, {}, at).percentile

    @pytest.mark.parametrize(
        ("before", "now", "percentile"),
        [
            (100.0, 100.0, 35.0), (100.0, 109.9, 35.0), (100.0, 90.1, 35.0), (0.0, 0.0, 35.0),
            (100.0, 110.1, 30.0), (100.0, 89.9, 30.0), (100.0, 599.0, 30.0), (100.0, 0.0, 30.0),
            (100.0, 601.0, 25.0), (0.0, 1.0, 25.0), (1.0001, 6.0006, 25.0),
        ],
    )  # fmt: skip
    def test_flat_relaxes_and_a_leap_tightens(self, before: float, now: float, percentile: float) -> None:
        assert self.judged(before, now) == percentile

    def test_it_stays_between_delta_and_a_hundred(self) -> None:
        assert self.judged(1.0, 1.0, percentile=98.0) == 100.0
        assert self.judged(1.0, 1.0, percentile=100.0) == 100.0
        assert self.judged(1.0, 9.0, percentile=7.0) == 5.0
        assert self.judged(1.0, 9.0, percentile=5.0) == 5.0

    @pytest.mark.parametrize(
        ("cycle", "at", "moves"), [(19, 20, 0), (38, 39, 0), (39, 40, 1), (40, 41, 0), (40, 40, 0), (59, 60, 1), (30, 65, 2)]
    )
    def test_it_judges_once_at_each_boundary_from_the_second_on(self, cycle: int, at: int, moves: int) -> None:
        assert paced(Pacer(30.0, cycle), self.pacing, {}, at).percentile == 30.0 + 5 * moves

    @pytest.mark.parametrize(("now", "percentile"), [(8.6, 35.0), (8.9, 30.0)])
    def test_a_window_is_the_sum_of_its_cycles_means(self, now: float, percentile: float) -> None:
        """At 60: W1 = 6 / 2.0001 + 5 / 1.0001 = 7.99935, of which 8.6 is 7.5 % more and 8.9 is 11 %."""
        early = ((19, 50.0), (20, 2.0), (20, 4.0), (25, 5.0))
        late = ((40, now / 2 * 1.0001), (59, now / 2 * 1.0001), (60, 99.0))
        assert paced(Pacer(30.0, 59, (), early + late), self.pacing, {}, 60).percentile == percentile

    def test_what_came_back_counts_in_the_cycle_of_its_acceptance(self) -> None:
        pacer = Pacer(30.0, 5, (("a", 0), ("b", 3), ("c", 1)))
        nodes = {"a": seen(7.0, last=4), "b": seen(9.0, last=2, count=3), "c": seen(8.0, last=5, count=2)}
        after = paced(pacer, self.pacing, nodes, 7)
        assert after.out == (("b", 3),)  # nothing new of b
        assert after.gains == ((5, 7.0), (6, 8.0))

    def test_what_no_window_reaches_any_more_is_forgotten(self) -> None:
        gains = ((9, 1.0), (10, 1.0), (11, 1.0))
        assert paced(Pacer(30.0, 49, (), gains), self.pacing, {}, 50).gains == gains[1:]

    def test_who_is_chosen_again_has_no_earlier_assign_any_more(self) -> None:
        pacer = exploiting(Pacer(30.0, 5, (("a", 0), ("b", 0))), {"c": seen(1.0, count=4)}, ["a", "c"], ["c"])
        assert pacer.out == (("b", 0), ("c", 4))

    def test_a_run_of_equal_rounds_relaxes_step_by_step(self) -> None:
        """Ten nodes of equal U, one chosen a cycle: at cycles 40, 60, ... the percentile rises until T is infinite."""
        nodes, state, percentiles = {f"t{value}": seen(5.0, duration=value + 1) for value in range(10)}, None, {}
        for cycle in range(400):
            (node,), state = Oort().choose(view(nodes, cycle=cycle, ordinal=cycle), 1, state)
            nodes[node] = seen(5.0, duration=nodes[node].duration, last=cycle, count=nodes[node].count + 1)
            percentiles[cycle + 1] = state.pacer.percentile
        assert [percentiles[cycle] for cycle in (1, 39, 40, 59, 60, 79, 80)] == [30, 30, 35, 35, 40, 40, 45]
        assert percentiles[40 + 12 * 20] == 95
        assert percentiles[40 + 13 * 20] == percentiles[400] == 100
        assert state is not None
        assert state.preferred.duration == inf


class TestShares:
    """epsilon, and what it leaves to whom."""

    @pytest.mark.parametrize(("cycle", "share"), [(0, 0.882), (1, 0.86436), (73, 0.201824), (74, 0.2), (1000, 0.2)])
    def test_epsilon_decays_to_its_floor(self, cycle: int, share: float) -> None:
        assert Oort().share(view({"a": Node()}, cycle=cycle)) == pytest.approx(share, abs=1e-6)

    def test_epsilon_is_0_when_nobody_is_unexplored(self) -> None:
        assert Oort().share(view({"a": seen(1.0)})) == 0.0
        assert Oort().share(view({"a": seen(1.0), "b": Node()}, free=["a"])) == 0.882  # a busy one is somebody

    def hows(self, policy: Oort | AsyncOort, nodes: dict[str, Node], want: int, **at: Any) -> Counter[str]:
        _, state = policy.choose(view(nodes, **at), want, None)
        return Counter(score.how for score in state.scores)

    def test_the_share_is_rounded_down(self) -> None:
        nodes = {f"a{value}": seen(1.0) for value in range(20)} | {f"b{value}": Node() for value in range(20)}
        assert self.hows(Oort(), nodes, 10) == {"exploit": 1, "explore": 9}  # 10 (1 - 0.882) = 1.18
        assert self.hows(Oort(), nodes, 10, cycle=40) == {"exploit": 6, "explore": 4}  # 0.9 x 0.98^41 = 0.393
        assert self.hows(Oort(), nodes, 10, cycle=100) == {"exploit": 8, "explore": 2}
        assert self.hows(Oort(), nodes, 1, cycle=100) == {"explore": 1}

    def test_a_single_slot_is_exploited_as_often_as_the_share_says(self) -> None:
        nodes = {f"a{value}": seen(1.0) for value in range(5)} | {f"b{value}": Node() for value in range(5)}
        hows = sum((self.hows(AsyncOort(), nodes, 1, cycle=100, ordinal=ordinal) for ordinal in range(1000)), Counter[str]())
        assert 760 < hows["exploit"] < 840

    def test_all_exploit_when_nobody_is_unexplored(self) -> None:
        assert self.hows(Oort(), {f"a{value}": seen(1.0) for value in range(9)}, 5) == {"exploit": 5}

    def test_all_explore_at_the_start(self) -> None:
        assert self.hows(AsyncOort(), {f"a{value}": Node() for value in range(9)}, 5) == {"explore": 5}

    def test_too_few_unexplored_are_filled_up(self) -> None:
        nodes = {f"a{value}": seen(1.0) for value in range(9)} | {"b": Node(), "c": Node()}
        assert self.hows(Oort(), nodes, 10) == {"exploit": 1, "explore": 2, "fill": 7}
        assert self.hows(Oort(), nodes, 5, free=[node for node in nodes if node[0] == "a"]) == {"fill": 5}

    def test_filling_is_uniform(self) -> None:
        """The only unexplored node is busy; utilities differ a hundred times."""
        nodes = {f"a{value}": seen(10.0**value) for value in range(4)} | {"b": Node()}
        chosen = Counter[str]()
        for ordinal in range(2000):
            chosen.update(Oort().choose(view(nodes, free=list(nodes)[:4], ordinal=ordinal), 1, None)[0])
        assert chisquare(list(chosen.values())).pvalue > 0.001
        assert len(chosen) == 4


class TestWhoIsSampled:
    """Exploited are those over the cut-off, explored those in the window."""

    nodes = {name: seen(value) for name, value in {"a": 100.0, "b": 90.0, "c": 80.0, "d": 70.0, "e": 40.0, "f": 1.0}.items()}

    def ever(self, policy: Oort, nodes: dict[str, Node], want: int, **at: Any) -> set[str]:
        return {node for ordinal in range(300) for node in policy.choose(view(nodes, ordinal=ordinal, **at), want, None)[0]}

    @pytest.mark.parametrize(
        ("cut_off", "want", "ever"),
        [
            (0.7, 2, "abcd"),  # edge: c, 0.798; 0.7 x is 0.559: d (0.697) is over it, e (0.394) isn't
            (0.95, 2, "abc"),
            (0.05, 2, "abcde"),  # f: 1e-5
            (1.0, 2, "abc"),
            (0.7, 3, "abcd"),  # edge d: 0.488
            (0.5, 3, "abcde"),
            (0.7, 6, "abcdef"),
        ],
    )
    def test_the_cut_off(self, cut_off: float, want: int, ever: str) -> None:
        assert self.ever(Oort(cut_off=cut_off), self.nodes, want) == set(ever)

    def test_a_negative_cut_off_is_not_widened_to_exclude(self) -> None:
        nodes = {"a": seen(10.0), "b": seen(20.0), "c": seen(0.0), "d": seen(0.0)}
        _, state = Oort().choose(view(nodes), 3, None)
        assert [score.how for score in state.scores] == ["exploit"] * 3

    def test_sampling_goes_by_score(self) -> None:
        """The best and the edge: a and b, with scores 1 and 89.001 / 99.001."""
        chosen = Counter[str]()
        for ordinal in range(4000):
            chosen.update(Oort(cut_off=1.0).choose(view(self.nodes, ordinal=ordinal), 1, None)[0])
        assert set(chosen) == {"a", "b"}
        other = (90 - 0.999) / (100 - 0.999)
        assert chisquare([chosen["a"], chosen["b"]], [4000 / (1 + other), 4000 * other / (1 + other)]).pvalue > 0.001

    def test_the_window_of_exploration_is_five_times_what_is_wanted(self) -> None:
        nodes = {f"t{value:02}": Node(value + 10) for value in range(20)}
        policy = Oort(percentile=5)  # T = 11: the best are the fastest, and t00 and t01 tie
        assert self.ever(policy, nodes, 1) == {f"t{value:02}" for value in range(5)}
        assert self.ever(Oort(percentile=5, window=1), nodes, 1) == {"t00", "t01"}  # the first ties with the second
        assert self.ever(Oort(percentile=100, window=1), nodes, 1) == set(nodes)

    def test_a_narrow_window_still_holds_as_many_as_are_wanted(self) -> None:
        nodes = {f"t{value}": Node(value + 10) for value in range(6)}
        assert Oort(percentile=5, window=0.1).choose(view(nodes), 3, None)[0] == ["t0", "t1", "t2"]

    def test_slow_ones_are_explored_less(self) -> None:
        nodes, chosen = {"a": Node(10), "b": Node(20)}, Counter[str]()
        for ordinal in range(4000):
            chosen.update(Oort().choose(view(nodes, ordinal=ordinal), 1, None)[0])
        assert chisquare([chosen["a"], chosen["b"]], [3200, 800]).pvalue > 0.001


class TestBlacklist:
    """Off by default; those over the bound, the most used first, at most 0.3 of all nodes."""

    nodes = {f"t{count}": seen(5.0, count=count) for count in range(1, 11)}

    def chosen(self, policy: Oort, want: int = 10) -> list[str]:
        return Oort.choose(policy, view(self.nodes), want, None)[0]

    def test_it_is_off(self) -> None:
        assert len(self.chosen(Oort())) == 10

    def test_who_took_part_too_often_is_never_chosen(self) -> None:
        assert sorted(set(self.nodes) - set(self.chosen(Oort(blacklist=8)))) == ["t10", "t9"]
        assert self.chosen(Oort(blacklist=10)) == sorted(self.nodes)

    def test_it_has_a_bound(self) -> None:
        assert sorted(set(self.nodes) - set(self.chosen(Oort(blacklist=0)))) == ["t10", "t8", "t9"]
        assert len(self.chosen(Oort(blacklist=0, blacklist_share=0.5))) == 5
        assert self.chosen(Oort(blacklist=0, blacklist_share=1.0)) == []


class TestDraws:
    """Successive sampling, by names."""

    weights = {"a": 4.0, "b": 2.0, "c": 1.0, "d": 1.0}

    def test_the_distribution_is_that_of_successive_draws(self) -> None:
        counts = Counter(tuple(drawn(self.weights, 2, seed, "x")) for seed in range(12000))
        expected = {
            pair: self.weights[pair[0]] / 8 * self.weights[pair[1]] / (8 - self.weights[pair[0]]) for pair in permutations("abcd", 2)
        }
        assert chisquare([counts[pair] for pair in expected], [12000 * share for share in expected.values()]).pvalue > 0.001

    def test_the_order_of_the_names_plays_no_part(self) -> None:
        backwards = dict(reversed(self.weights.items()))
        assert all(drawn(self.weights, 3, seed) == drawn(backwards, 3, seed) for seed in range(50))

    def test_who_weighs_nothing_or_less_comes_last(self) -> None:
        assert {drawn({"a": 1.0, "b": 0.0, "c": -3.0}, 1, seed)[0] for seed in range(200)} == {"a"}
        assert sorted(drawn({"a": 1.0, "b": 0.0}, 5, 1)) == ["a", "b"]

    def test_paths_part(self) -> None:
        assert len({tuple(drawn(self.weights, 4, 1, "x", ordinal)) for ordinal in range(50)}) > 5


@dataclass
class Arm:
    """One client of the model. assigned: None if idle, else whether by exploitation."""

    duration: int
    reward: float = 0.0
    stamp: int = 0
    count: int = 0
    assigned: bool | None = None


@dataclass
class Model:
    """Oort written down naively, in one piece, from the text of the paper's code; cycles from 1."""

    arms: dict[str, Arm]
    policy: Oort | AsyncOort
    threshold: float = 30.0
    harvest: list[tuple[int, float]] = field(default_factory=list)
    judged: int = 0

    def accept(self, name: str, reward: float, cycle: int) -> None:
        arm = self.arms[name]
        if arm.assigned:
            self.harvest.append((cycle, reward))
        arm.reward, arm.stamp, arm.count, arm.assigned = reward, cycle, arm.count + 1, None

    def pace(self, cycle: int) -> None:
        step, delta = self.policy.pacer_step, self.policy.pacer_delta
        for now in range(self.judged + 1, cycle + 1):
            if now >= 2 * step and now % step == 0:
                per_cycle = [[reward for at, reward in self.harvest if at == one] for one in range(now + 1)]
                history = [sum(rewards) / (len(rewards) + 1e-4) for rewards in per_cycle]
                last, current = sum(history[now - 2 * step : now - step]), sum(history[now - step : now])
                if abs(current - last) <= last * 0.1:
                    self.threshold = min(100.0, self.threshold + delta)
                elif abs(current - last) >= last * 5:
                    self.threshold = max(delta, self.threshold - delta)
        self.judged = cycle

    def choose(self, want: int, cycle: int, seed: int, ordinal: int) -> list[str]:
        self.pace(cycle)
        idle = sorted(name for name, arm in self.arms.items() if arm.assigned is None)
        lasting = sorted(arm.duration for arm in self.arms.values())
        limit = inf if self.threshold >= 100 else lasting[min(int(len(lasting) * self.threshold / 100), len(lasting) - 1)]

        def slow(name: str) -> float:
            return min(1.0, float((limit / self.arms[name].duration) ** self.policy.penalty))

        def lottery(what: str, tickets: dict[str, float], size: int) -> list[str]:
            def number(name: str) -> float:
                return (derive(seed, "select", ordinal, what, name) + 1) / (2**64 + 1)

            return sorted(tickets, key=lambda name: (-log(number(name)) / max(tickets[name], 1e-12), name))[:size]

        tried = [name for name in idle if self.arms[name].count > 0]
        rewards = sorted(self.arms[name].reward for name in tried if self.arms[name].reward > 0) or [0.0]
        top = rewards[min(int(len(rewards) * self.policy.clip), len(rewards) - 1)]
        low = rewards[0] * 0.999
        spread = max(rewards[-1] - low, 1e-4)
        worth = {
            name: ((min(self.arms[name].reward, top) - low) / spread + sqrt(0.1 * log(cycle) / self.arms[name].stamp)) * slow(name)
            for name in tried
        }
        epsilon = max(0.9 * 0.98**cycle, 0.2) if any(arm.count == 0 for arm in self.arms.values()) else 0.0
        luck = derive(seed, "select", ordinal, "round") / 2**64 if self.policy.rounding == "fair" else 0.0
        exploit = min(int(want * (1 - epsilon) + luck), want, len(worth))
        ranked = sorted(worth.values(), reverse=True)
        picked: list[str] = []
        if exploit > 0:
            edge = ranked[min(exploit, len(ranked) - 1)]
            edge = edge * self.policy.cut_off if edge > 0 else edge
            picked = lottery("exploit", {name: value for name, value in worth.items() if value >= edge}, exploit)
        winners = list(picked)
        untried = [name for name in idle if self.arms[name].count == 0]
        explore = min(want - exploit, len(untried))
        if explore > 0:
            chances = sorted((slow(name) for name in untried), reverse=True)
            least = chances[min(max(int(self.policy.window * explore), explore), len(chances)) - 1]
            picked += lottery("explore", {name: slow(name) for name in untried if slow(name) >= least}, explore)
        rest = [name for name in tried if name not in winners]
        picked += lottery("fill", dict.fromkeys(rest, 1.0), want - len(picked))
        for name in picked:
            self.arms[name].assigned = name in winners
        return sorted(picked)


MOVES = st.tuples(
    st.integers(0, 3),  # cycles that pass
    st.integers(1, 6),  # wanted
    st.lists(st.sampled_from(["accept", "accept", "reject", "wait"]), min_size=9, max_size=9),
    st.lists(st.sampled_from([0.0, 0.5, 1.0, 3.0, 10.0, 200.0]), min_size=9, max_size=9),
)


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(
        [Oort(pacer_step=3), AsyncOort(pacer_step=2), AsyncOort(pacer_step=5, clip=0.5, cut_off=0.95, window=1, pacer_delta=20)]
    ),
    st.lists(st.sampled_from([1, 2, 3, 5, 8]), min_size=1, max_size=9),
    st.lists(MOVES, min_size=1, max_size=25),
    st.integers(0, 3),
)
def test_the_whole_rule_is_that_of_a_naive_model(policy: Oort | AsyncOort, durations: list[int], moves: Any, seed: int) -> None:
    """A made-up history of choices, accepts and rejects: the same nodes, and never a busy one."""
    nodes = {f"t{place}": Node(duration) for place, duration in enumerate(durations)}
    model = Model({name: Arm(node.duration) for name, node in nodes.items()}, policy)
    busy, state, cycle = set[str](), None, 0
    for ordinal, (passed, want, fates, utilities) in enumerate(moves):
        cycle += passed
        for name, fate, utility in zip(nodes, fates, utilities, strict=False):
            if name in busy and fate != "wait":
                busy.discard(name)
                if fate == "accept":
                    nodes[name] = seen(utility, last=cycle, duration=nodes[name].duration, count=nodes[name].count + 1)
                    model.accept(name, utility, cycle + 1)
                else:
                    model.arms[name].assigned = None
        free = [name for name in nodes if name not in busy]
        names, state = policy.choose(view(nodes, cycle=cycle, free=free[::-1], ordinal=ordinal, seed=seed), want, state)
        assert not busy.intersection(names)
        assert len(names) == min(want, len(free))
        assert names == [score.trainer for score in policy.scores(state) or ()]
        assert names == model.choose(want, cycle + 1, seed, ordinal)
        assert state.pacer.percentile == model.threshold
        busy.update(names)


def test_a_choice_is_a_function_of_view_and_state() -> None:
    nodes = {f"t{value}": seen(value + 1.0, duration=value + 1) if value % 2 else Node(value + 1) for value in range(10)}
    _, state = Oort().choose(view(nodes), 4, None)
    again = [Oort().choose(view(nodes, cycle=3, ordinal=1), 4, state) for _ in range(3)]
    assert again[0] == again[1] == again[2]
    assert Oort().choose(view(nodes, cycle=3, ordinal=1, free=list(nodes)[::-1]), 4, state) == again[0]
    assert len({tuple(Oort().choose(view(nodes, cycle=3, ordinal=ordinal), 4, state)[0]) for ordinal in range(40)}) > 2
    assert len({tuple(Oort().choose(view(nodes, cycle=3, seed=seed), 4, state)[0]) for seed in range(40)}) > 2


def test_the_state_is_plain_values() -> None:
    _, state = Oort().choose(view({"a": seen(2.0, duration=3), "b": seen(2.0, duration=3)}, cycle=4), 1, None)
    (score,) = state.scores
    expected = Score(score.trainer, "exploit", score.score, 1.0, sqrt(0.1 * log(5)), 1.0)
    assert state == State(Pacer(30.0, 5, ((score.trainer, 1),), ()), Preferred(2, 30.0, 3.0), (expected,))


@pytest.mark.parametrize("policy", [Oort(), AsyncOort()])
def test_nobody_is_chosen_where_nobody_is_free(policy: Oort | AsyncOort) -> None:
    assert policy.choose(view({"a": Node(), "b": seen(1.0)}, free=[]), 3, None)[0] == []


def test_fedbuff_draws_as_random_does() -> None:
    nodes = {f"t{value}": Node() for value in range(12)}
    for ordinal in range(30):
        at = view(nodes, ordinal=ordinal)
        assert FedBuff().choose(at, 4, None) == Random().choose(at, 4, None)


@pytest.mark.parametrize(
    ("field", "value"), [("clip", 98), ("cut_off", -0.1), ("percentile", 0), ("percentile", 101), ("pacer_step", 0), ("type", "x")]
)
def test_numbers_out_of_range_are_refused(field: str, value: Any) -> None:
    with pytest.raises(ValidationError, match=field):
        Oort.model_validate({field: value})


class TestRun:
    """A whole simulated run on made-up data: asynchronous, C = 7 over K = 3, delays that tie, a join and a leave."""

    of = condition(
        "async", select={"type": "async_oort", "pacer_step": 5}, trainers=12, goal=3, concurrency=7, stop={"cycles": 40},
        delays={"values": [1.0, 0.5, 2.0, 2.0, 1.5, 4.0]}, population={"joins": {"t05": 6.0}, "leaves": {"t02": 5.0}},
    )  # fmt: skip

    @staticmethod
    def trace(of: Condition, ties: Ties | None = None) -> Trace:
        learner, trace = build(of), Trace()
        aggregator = Aggregator(of, learner.facts.init, learner.facts.bins)
        trainers = {node: Trainer(of, profile) for node, profile in profiles(of).items()}
        Simulation(aggregator, trainers, Inline(learner), cast(Journal, trace), Silence(), ties=ties).run()
        return trace

    def test_it_reaches_every_part_of_the_rule(self) -> None:
        trace = self.trace(self.of)
        scores = [score for selection in trace.of(Selection) for score in selection.scores]
        assert {score.how for score in scores} == {"exploit", "explore", "fill"}
        assert any(score.penalty < 1 for score in scores)
        assert {score.trainer for score in scores} == set(self.of.nodes)
        assert all([score.trainer for score in selection.scores] == selection.chosen for selection in trace.of(Selection))

    def test_no_busy_node_is_ever_chosen(self) -> None:
        trace = self.trace(self.of)
        assert max(selection.in_flight for selection in trace.of(Selection)) > 3
        assert list(faults_of_slots(trace)) == []

    def test_the_order_of_what_happens_at_one_instant_plays_no_part(self) -> None:
        first = self.trace(self.of)
        assert [difference(first, self.trace(self.of, Ties(seed))) for seed in range(6)] == [None] * 6

    def test_it_is_another_run_than_a_uniform_one(self) -> None:
        uniform = self.of.model_copy(update={"select": FedBuff()})
        assert difference(self.trace(self.of), self.trace(uniform)) is not None

    def test_it_can_be_replayed(self, tmp_path: Path) -> None:
        simulate(tmp_path / "first", self.of)
        simulate(tmp_path / "again", self.of, ties=Ties(3))
        assert digest(tmp_path / "first") == digest(tmp_path / "again")
        nodes = replay(tmp_path / "first")
        assert {node.node: (node.difference, node.skipped) for node in nodes} == dict.fromkeys(["aggregator", *self.of.nodes], (None, None))

    def test_the_synchronous_rule_closes_its_cycles_too(self) -> None:
        trace = self.trace(condition("gated", select="oort", trainers=8))
        assert trace.verdict == "COMPLETED"
        assert list(faults_of_slots(trace)) == []
