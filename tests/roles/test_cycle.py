"""The cycle: the only place where progress advances, the pool of a bin, and what a commit takes with it."""

from dataclasses import astuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.messages import Payload
from flame.core.progress import Progress
from flame.core.tensor import Tensor
from flame.learn.params import vector
from flame.roles.cycle import Cycle, Upload
from flame.roles.roster import Row
from tests.stage import numbers


def upload(number: int, *delta: float, rate: float = 1.0) -> Upload:
    row = Row(number, f"t{number}", 0, number, 0, 0, 0, 0, 0, "full")
    moved = numbers(*(delta or (float(number), 0.0)))
    return Upload(row, number, moved, rate, 0, Payload("dense", {"delta": moved}))


def cycle_of(goal: int, *uploads: Upload, bins: int = 3) -> Cycle:
    cycle = Cycle(bins)
    cycle.open(goal, 10, None)
    cycle.accepted += uploads
    return cycle


def listed(tensor: Tensor | None) -> list[float] | None:
    return None if tensor is None else vector(tensor).tolist()


@given(st.lists(st.booleans(), max_size=40), st.integers(1, 4))
def test_progress_follows_its_law(commits: list[bool], bins: int) -> None:
    """Kept: only iteration. Committed: next bin, iteration 0, next version, and a lap after the last bin. Each counts a cycle."""
    cycle = Cycle(bins)
    version = iteration = 0
    for number, commit in enumerate(commits, start=1):
        cycle.commit() if commit else cycle.keep()
        version, iteration = (version + 1, 0) if commit else (version, iteration + 1)
        assert cycle.progress == Progress(version // bins, version % bins, iteration, version, number)


def test_progress_is_a_value() -> None:
    cycle = Cycle(2)
    before = cycle.progress
    cycle.keep()
    cycle.commit()
    assert astuple(before) == (0, 0, 0, 0, 0)


@pytest.mark.parametrize(
    ("goal", "concurrency", "sampled"),
    [(3, 5, 3), (5, 3, 3), (0, 3, 1), (-2, 3, 1), (3, 3, 3), (2, 0, 1)],
)
def test_k_is_clamped_to_1_and_c(goal: int, concurrency: int, sampled: int) -> None:
    cycle = Cycle(1)
    cycle.open(goal, concurrency, 4)
    assert (cycle.goal, cycle.concurrency, cycle.quota) == (sampled, concurrency, 4)


def test_k_and_c_are_nothing_before_the_first_cycle() -> None:
    cycle = Cycle(1)
    assert (cycle.goal, cycle.concurrency, cycle.quota, cycle.accepted, cycle.pool) == (0, 0, None, [], [])


@pytest.mark.parametrize(("accepts", "full"), [(0, False), (1, False), (2, True), (3, True)])
def test_it_is_full_at_k_accepts(accepts: int, full: bool) -> None:
    assert cycle_of(2, *(upload(number) for number in range(accepts))).full is full


def test_a_close_takes_the_first_k_and_carries_the_rest() -> None:
    one, two, three = upload(1), upload(2), upload(3)
    cycle = cycle_of(2, one, two, three)
    cohort, _ = cycle.close()
    assert (cohort, cycle.accepted, cycle.pool) == ([one, two], [three], [one, two])


def test_a_surplus_of_k_fills_the_next_cycle_at_once() -> None:
    cycle = cycle_of(2, *(upload(number) for number in (1, 2, 3, 4)))
    cycle.close()
    cycle.open(2, 10, None)
    assert cycle.full


def test_the_pool_stays_over_the_iterations_of_a_bin_and_a_commit_empties_it() -> None:
    cycle = cycle_of(1, upload(1), upload(2))
    cycle.close()
    cycle.keep()
    assert len(cycle.pool) == 1
    cohort, view = cycle.close()
    assert [each.row.id for each in cohort] == [2]
    assert (view.uploads, view.iteration) == (2, 1)
    assert listed(cycle.commit()) == [3.0, 0.0]
    assert cycle.pool == []
    assert cycle.accepted == []


def test_a_commit_leaves_what_is_carried() -> None:
    carried = upload(2)
    cycle = cycle_of(1, upload(1), carried)
    cycle.close()
    cycle.commit()
    assert cycle.accepted == [carried]


def test_the_view_has_the_variance_of_the_whole_pool() -> None:
    """A = (1, 0) of the first, B = mean of (2, 0), (6, 0) = (4, 0): V = 9 / (2 x 2)."""
    cycle = cycle_of(1, upload(1), upload(2), upload(6))
    _, view = cycle.close()
    assert view.variance is None
    cycle.keep()
    cycle.close()
    cycle.keep()
    _, view = cycle.close()
    assert view.variance == 9 / 4


def test_the_variance_is_blind_to_rates_and_the_aggregate_is_not() -> None:
    cycle = cycle_of(2, upload(1, 2.0, 0.0, rate=0.5), upload(2, 4.0, 2.0, rate=0.25))
    _, view = cycle.close()
    assert view.variance == ((2 - 4) ** 2 + (0 - 2) ** 2) / 4
    assert cycle.aggregate().tolist() == [(0.5 * 2 + 0.25 * 4) / 2, 0.25 * 2 / 2]  # by n, not by the sum of the rates


def test_u_is_the_unweighted_sum() -> None:
    cycle = cycle_of(2, upload(1, 2.0, 0.0, rate=0.5), upload(2, 4.0, 2.0, rate=0.25))
    cycle.close()
    assert listed(cycle.commit()) == [6.0, 2.0]


def test_a_bin_of_nothing_has_no_u() -> None:
    assert Cycle(1).commit() is None


class TestRunning:
    """What grad_aware holds an update against: this cycle's accepts, weighed, in order."""

    def test_it_is_the_rate_weighted_sum_in_float64(self) -> None:
        cycle = cycle_of(3)
        assert cycle.running() is None
        cycle.accepted.append(upload(1, 2.0, 0.0, rate=0.5))
        assert cycle.running().tolist() == [1.0, 0.0]  # type: ignore[union-attr]
        cycle.accepted += [upload(2, 4.0, 2.0, rate=0.25), upload(3, 0.0, 1.0)]
        assert cycle.running().tolist() == [2.0, 1.5]  # type: ignore[union-attr]

    def test_a_close_starts_it_anew_from_what_is_carried(self) -> None:
        cycle = cycle_of(1, upload(1), upload(2, 4.0, 2.0, rate=0.5))
        cycle.running()
        cycle.close()
        assert cycle.running().tolist() == [2.0, 1.0]  # type: ignore[union-attr]
        cycle.close()
        assert cycle.running() is None

    def test_what_was_handed_out_is_never_changed(self) -> None:
        cycle = cycle_of(3, upload(1))
        before = cycle.running()
        cycle.accepted.append(upload(2))
        cycle.running()
        assert before.tolist() == [1.0, 0.0]  # type: ignore[union-attr]


def test_the_mean_square_is_computed_where_it_is_wanted() -> None:
    """(1 + 0)/2 and (4 + 16)/2: their mean is 5.25. V = (1 + 16) / 4 = 4.25, so n_eff = 42/17."""
    for squares, expected in ((False, None), (True, 5.25)):
        cycle = Cycle(3, squares=squares)
        cycle.open(2, 10, None)
        cycle.accepted += [upload(1), upload(2, 2.0, 4.0)]
        _, view = cycle.close()
        assert (view.mean_square, view.n_eff) == (pytest.approx(expected), pytest.approx(42 / 17) if squares else None)
