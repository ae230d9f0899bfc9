"""Selection: uniform, in O(want), a function of (seed, ordinal) or of (seed, lap); against shuffles of the whole list."""

from collections import Counter
from collections.abc import Sequence
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from flame.core.progress import Progress
from flame.core.rng import derive
from flame.policies.select import All, Random, SelectView

NODES = [f"t{number}" for number in range(6)]


class Counted(Sequence[str]):
    """A list of a million names that counts how often it is asked."""

    def __init__(self, size: int = 1_000_000) -> None:
        self.size, self.asked = size, 0

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, place: int) -> str:  # type: ignore[override]
        self.asked += 1
        if not 0 <= place < self.size:
            raise IndexError(place)
        return f"t{place}"


def view(free: Sequence[str] = NODES, *, ordinal: int = 0, seed: int = 1, lap: int = 0) -> SelectView:
    return SelectView(free, Progress(round=lap), seed, ordinal)


def chosen(policy: All | Random, at: SelectView, want: int) -> list[str]:
    names, state = policy.choose(at, want, None)
    assert state is None
    return names


def shuffled(free: Sequence[str], want: int, ordinal: int, seed: int) -> list[str]:
    """Fisher and Yates on a copy of the whole list: the first `want` places, by name."""
    nodes = list(free)
    for place in range(min(want, len(nodes))):
        other = place + derive(seed, "select", ordinal, place) % (len(nodes) - place)
        nodes[place], nodes[other] = nodes[other], nodes[place]
    return sorted(nodes[:want])


@given(st.integers(0, 12), st.integers(0, 14), st.integers(0, 50), st.integers(0, 3))
def test_drawing_is_a_shuffle_of_which_only_the_head_is_done(size: int, want: int, ordinal: int, seed: int) -> None:
    free = [f"t{number:02}" for number in range(size)]
    assert chosen(Random(), view(free, ordinal=ordinal, seed=seed), want) == shuffled(free, want, ordinal, seed)


def test_drawing_looks_at_as_many_nodes_as_it_wants() -> None:
    free = Counted()
    names = chosen(Random(), view(free), 30)
    assert free.asked == 30
    assert len(set(names)) == 30


def test_pairs_are_uniform() -> None:
    """15 pairs of 6, 6 000 draws: chi-square at a level that a right draw misses once in a thousand."""
    seen = Counter(tuple(chosen(Random(), view(ordinal=ordinal), 2)) for ordinal in range(6000))
    assert set(seen) == set(combinations(NODES, 2))
    assert chisquare(list(seen.values())).pvalue > 0.001


@pytest.mark.parametrize("want", [1, 5])
def test_each_node_is_as_likely(want: int) -> None:
    seen = Counter(node for seed in range(6000) for node in chosen(Random(), view(seed=seed), want))
    assert chisquare([seen[node] for node in NODES]).pvalue > 0.001


def test_draws_hang_on_seed_and_ordinal_alone() -> None:
    def draws(seed: int, ordinals: range) -> list[list[str]]:
        return [chosen(Random(), view(ordinal=ordinal, seed=seed), 3) for ordinal in ordinals]

    assert draws(1, range(20)) == draws(1, range(20))
    assert draws(1, range(20)) != draws(2, range(20))
    assert len({tuple(names) for names in draws(1, range(20))}) > 5
    assert chosen(Random(), view(lap=0), 3) == chosen(Random(), view(lap=1), 3)


@pytest.mark.parametrize("policy", [All(), Random(), Random(every="round")])
@pytest.mark.parametrize(("free", "want"), [(NODES, 6), (NODES, 9), (NODES[:2], 3), ([], 3)])
def test_who_wants_too_much_gets_everybody_by_name(policy: All | Random, free: list[str], want: int) -> None:
    assert chosen(policy, view(free[::-1]), want) == free


@pytest.mark.parametrize("policy", [All(), Random(), Random(every="round")])
def test_the_answer_is_sorted_by_name_and_wants_no_more(policy: All | Random) -> None:
    for ordinal in range(20):
        names = chosen(policy, view(NODES[::-1], ordinal=ordinal, lap=ordinal), 4)
        assert names == sorted(set(names))
        assert len(names) == 4


def test_all_takes_the_first_names_whatever_the_order_of_the_ledger() -> None:
    assert chosen(All(), view(["t5", "t1", "t3", "t2"]), 3) == ["t1", "t2", "t3"]


class TestEveryRound:
    """One cohort for a whole lap."""

    policy = Random(every="round")

    def ranked(self, lap: int, seed: int = 1) -> list[str]:
        return sorted(NODES, key=lambda node: derive(seed, "select", lap, node))

    def test_it_is_the_same_for_the_whole_lap(self) -> None:
        for lap in range(5):
            expected = sorted(self.ranked(lap)[:3])
            assert all(chosen(self.policy, view(ordinal=ordinal, lap=lap), 3) == expected for ordinal in range(10))

    def test_it_hangs_on_the_set_and_not_on_its_order(self) -> None:
        assert chosen(self.policy, view(NODES[::-1]), 3) == chosen(self.policy, view(NODES), 3)

    def test_another_lap_or_seed_draws_anew(self) -> None:
        assert len({tuple(chosen(self.policy, view(lap=lap), 3)) for lap in range(20)}) > 5
        assert len({tuple(chosen(self.policy, view(seed=seed), 3)) for seed in range(20)}) > 5

    def test_who_falls_out_is_replaced_by_the_next_in_rank(self) -> None:
        ranked = self.ranked(0)
        for lost in ranked[:3]:
            free = [node for node in NODES if node != lost]
            assert chosen(self.policy, view(free), 3) == sorted([*(node for node in ranked[:3] if node != lost), ranked[3]])

    def test_each_node_is_as_likely_over_the_laps(self) -> None:
        seen = Counter(node for lap in range(3000) for node in chosen(self.policy, view(lap=lap), 2))
        assert chisquare([seen[node] for node in NODES]).pvalue > 0.001
