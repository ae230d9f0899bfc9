"""K and C: constant, or after the uploads that bins need. By hand, and what must hold whatever the bins do."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from flame.config import Condition
from flame.policies.sizes import Sizes, SizesView, Static, VarTracking

Close = tuple[int, bool]
"""Uploads of the bin, and whether the close committed."""
SMALL = VarTracking(target=2, step=2, window=2, goal_min=2, goal_max=8)


def sampled(rule: VarTracking | Static, start: Sizes, closes: list[Close], trainers: int = 12) -> list[Sizes]:
    """K and C of the first cycle, and after each close."""
    found, state = [], None
    for pooled, committed in [(0, False), *closes]:
        sizes, state = rule.sample(SizesView(start, trainers, pooled, committed), state)  # type: ignore[arg-type]
        found.append(sizes)
    return found


def test_static_is_the_condition_s_whatever_the_bins_do() -> None:
    assert set(sampled(Static(), Sizes(4, 6), [(4, False), (900, True), (4, True)])) == {Sizes(4, 6)}
    assert Static().possible(Sizes(4, 6), 5) == (Sizes(4, 6),)


def test_the_example_of_the_docstring() -> None:
    closes = [(4, False), (8, False), (12, False), (18, True), (8, True), (8, True), (6, False), (10, True)]
    assert sampled(SMALL, Sizes(4, 6), closes) == [
        (4, 6), (4, 6), (4, 6), (6, 9), (8, 12), (8, 12), (6, 9), (4, 6), (6, 9),
    ]  # fmt: skip


def test_the_numbers_of_the_fork_are_the_defaults() -> None:
    rule = VarTracking()
    assert (rule.target, rule.step, rule.window, rule.goal_min, rule.goal_max) == (15, 2, 6, 5, 15)


def test_a_bin_that_drags_on_raises_k_before_it_commits_and_one_that_does_not_lowers_nothing() -> None:
    raised = sampled(SMALL, Sizes(4, 4), [(number, False) for number in range(4, 60, 4)])
    assert [sizes.goal for sizes in raised[:6]] == [4, 4, 4, 6, 8, 8]
    assert {sizes.goal for sizes in sampled(SMALL, Sizes(6, 6), [(1, False)] * 9)} == {6}


def test_the_window_forgets() -> None:
    wide, narrow = (SMALL.model_copy(update={"window": window}) for window in (3, 1))
    closes = [(30, True), (1, True), (1, True), (1, True)]
    assert [sizes.goal for sizes in sampled(wide, Sizes(4, 4), closes)] == [4, 6, 8, 6, 4]
    assert [sizes.goal for sizes in sampled(narrow, Sizes(4, 4), closes)] == [4, 6, 4, 2, 2]


@pytest.mark.parametrize(
    ("rule", "goal", "concurrency"),
    [({}, 8, 12), ({"concurrency_max": 9}, 8, 9), ({"concurrency_max": 8}, 8, 8), ({"goal_max": 5}, 5, 8), ({"concurrency_min": 6}, 8, 12)],
)
def test_c_follows_in_proportion_and_stays_in_its_bounds(rule: dict[str, int], goal: int, concurrency: int) -> None:
    """K0 = 4 and C0 = 6: K = 5 gives 7.5, which is rounded up."""
    *_, last = sampled(SMALL.model_copy(update=rule), Sizes(4, 6), [(900, False)] * 9)
    assert last == (goal, concurrency)


def test_c_stays_over_its_lower_bound_and_over_k() -> None:
    short = [(1, True)] * 5
    assert sampled(SMALL.model_copy(update={"concurrency_min": 5}), Sizes(4, 6), short)[-1] == (2, 5)
    assert sampled(SMALL, Sizes(4, 4), short)[-1] == (2, 2)
    assert sampled(SMALL, Sizes(8, 9), [(900, True)], trainers=9)[-1] == (8, 9)


RULES = st.builds(
    VarTracking, target=st.integers(1, 5), step=st.integers(1, 4), window=st.integers(1, 4), goal_min=st.integers(1, 4),
    goal_max=st.integers(5, 12), concurrency_min=st.none() | st.integers(1, 5), concurrency_max=st.none() | st.integers(12, 15),
)  # fmt: skip


@given(RULES, st.integers(0, 8), st.lists(st.tuples(st.integers(0, 90), st.booleans()), max_size=40))
def test_k_moves_by_a_step_at_most_and_both_stay_where_the_condition_allows(rule: VarTracking, more: int, closes: list[Close]) -> None:
    start = Sizes(5, 5 + more)
    found = sampled(rule, start, closes, trainers=15)
    assert all(abs(one.goal - other.goal) <= rule.step for one, other in pairwise(found))
    assert all(rule.goal_min <= sizes.goal <= min(rule.goal_max, sizes.concurrency) for sizes in found)
    assert all(sizes.concurrency <= (rule.concurrency_max or 15) for sizes in found)
    assert set(found) <= set(rule.possible(start, 15))


@given(RULES, st.integers(1, 80))
def test_a_need_that_does_not_change_brings_k_to_rest_where_it_meets_the_target(rule: VarTracking, need: int) -> None:
    """Bins that commit at `need` uploads, whatever the K."""
    state, pooled, committed, goals = None, 0, False, []
    for _ in range(400):
        sizes, state = rule.sample(SizesView(Sizes(5, 5), 15, pooled, committed), state)
        goals.append(sizes.goal)
        pooled = sizes.goal + (0 if committed else pooled)
        committed = pooled >= need
    last, cycles = goals[-1], -(-need // goals[-1])
    assert len(set(goals[-100:])) == 1
    assert cycles <= rule.target or last == rule.goal_max
    lower = max(last - rule.step, rule.goal_min)
    assert last == lower or last * cycles > rule.target * lower


def condition(**changes: Any) -> Condition:
    plain = {"trainers": 10, "goal": 4, "concurrency": 6, "stop": {"cycles": 5}}
    sizes = {"type": "var_tracking", "goal_min": 2, "goal_max": 8} | changes.pop("sizes", {})
    return Condition.model_validate(plain | changes | {"sizes": sizes})


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"goal": 1}, "`goal` K = 1 is outside `sizes.goal_min` = 2 .. `sizes.goal_max` = 8; give a `goal` within"),
        ({"goal": 9, "concurrency": 9}, "`goal` K = 9 is outside"),
        ({"sizes": {"goal_max": 3}}, "`goal` K = 4 is outside `sizes.goal_min` = 2 .. `sizes.goal_max` = 3"),
        ({"sizes": {"goal_max": 11}}, r"`sizes.goal_max` = 11 is over `trainers` N = 10: .* lower it \(`goal_max: 10`\)"),
        ({"sizes": {"concurrency_max": 12}}, "`sizes.concurrency_max` = 12 is over `trainers` N = 10: slots would stay empty"),
        ({"sizes": {"concurrency_max": 7}}, "`sizes.concurrency_max` = 7 is under `sizes.goal_max` = 8: .* lower `goal_max` to 7"),
        ({"sizes": {"concurrency_min": 7}}, "`concurrency` C = 6 is outside 7 .. 10, the bounds of C in `sizes`"),
        ({"concurrency": 9, "sizes": {"concurrency_max": 8}}, "`concurrency` C = 9 is outside 1 .. 8"),
        ({"limits": {"max_rejects": 7}}, "`limits.max_rejects` is 7, and a cycle takes K = 8 releases to close; give at least 8"),
    ],
)
def test_bounds_that_do_not_fit_are_refused_with_field_value_and_remedy(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        condition(**changes)


def test_the_bound_on_rejects_follows_the_c_in_force() -> None:
    assert [condition().max_rejects(c) for c in (6, 9)] == [60, 90]
    assert condition(limits={"max_rejects": 8}).max_rejects(9) == 8
