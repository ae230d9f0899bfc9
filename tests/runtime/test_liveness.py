"""Silence is a heartbeat that stops, or a compute that never ends; lateness is neither."""

from random import Random

import pytest

from flame.core.time import SECOND
from flame.runtime.transport.liveness import LONG_COMPUTE, REMEMBERED, TIMES_MEDIAN, Liveness

GRACE = 15 * SECOND


@pytest.fixture
def liveness() -> Liveness:
    heard = Liveness(GRACE)
    for worker in ("w0", "w1"):
        heard.present(worker, "1", 0)
    return heard


def test_nothing_is_expected_of_whom_nobody_has_announced() -> None:
    liveness = Liveness(GRACE)
    liveness.beat("w0", "1", 0, 0)
    assert liveness.silent(10 * GRACE) == []


def test_who_has_announced_itself_is_missed_even_if_it_never_beat() -> None:
    liveness = Liveness(GRACE)
    liveness.present("w0", "1", SECOND)
    assert liveness.silent(SECOND + GRACE) == []
    assert [worker for worker, *_ in liveness.silent(SECOND + GRACE + 1)] == ["w0"]


def test_who_is_being_started_has_an_allowance_and_not_more(liveness: Liveness) -> None:
    liveness.forget("w1")
    liveness.starting("w0", 8 * GRACE, 0)
    assert liveness.silent(9 * GRACE) == []
    assert [worker for worker, *_ in liveness.silent(9 * GRACE + 1)] == ["w0"]


def test_a_late_beat_of_an_earlier_life_says_nothing_of_the_present_one(liveness: Liveness) -> None:
    liveness.forget("w1")
    liveness.starting("w0", 8 * GRACE, 0)
    liveness.beat("w0", "1", 2 * LONG_COMPUTE, SECOND)
    assert liveness.silent(9 * GRACE) == []
    liveness.present("w0", "2", GRACE)
    liveness.beat("w0", "1", 0, 2 * GRACE)
    assert [worker for worker, *_ in liveness.silent(2 * GRACE + 1)] == ["w0"]


def test_nobody_is_missed_for_the_time_in_which_nobody_could_be_heard(liveness: Liveness) -> None:
    liveness.excuse(5 * GRACE)
    assert liveness.silent(6 * GRACE) == []
    assert len(liveness.silent(6 * GRACE + 1)) == 2


def test_a_worker_is_silent_when_its_heartbeat_has_stopped_for_longer_than_grace(liveness: Liveness) -> None:
    liveness.beat("w0", "1", 0, SECOND)
    liveness.beat("w1", "1", 0, 2 * SECOND)
    assert liveness.silent(SECOND + GRACE) == []
    assert liveness.silent(SECOND + GRACE + 1) == [("w0", "1", "no heartbeat for 15.0 s")]


def test_a_worker_that_beats_again_is_not_silent(liveness: Liveness) -> None:
    for worker in ("w0", "w1"):
        liveness.beat(worker, "1", 0, GRACE)
    assert liveness.silent(2 * GRACE) == []


def test_a_worker_that_is_given_up_is_not_missed(liveness: Liveness) -> None:
    for worker in ("w0", "w0", "w1"):
        liveness.forget(worker)
    assert liveness.silent(10 * GRACE) == []


def test_a_compute_may_take_a_minute_whatever_the_others_took(liveness: Liveness) -> None:
    for computing, silent in ((LONG_COMPUTE, False), (LONG_COMPUTE + 1, True)):
        liveness.beat("w0", "1", computing, 0)
        assert bool(liveness.silent(0)) == silent
        for _ in range(10):
            liveness.computed(SECOND)
        assert bool(liveness.silent(0)) == silent


def test_where_computes_are_slow_one_may_take_twenty_times_the_median(liveness: Liveness) -> None:
    for took in (1, 9, 10, 11, 500):
        liveness.computed(took * SECOND)
    bound = TIMES_MEDIAN * 10 * SECOND
    liveness.beat("w0", "1", bound, 0)
    assert liveness.silent(0) == []
    liveness.beat("w0", "1", bound + SECOND, 0)
    assert liveness.silent(0) == [("w0", "1", "a compute has run for 201 s, over 200 s")]


def test_the_median_is_of_the_last_computes_only(liveness: Liveness) -> None:
    for took in (10 * SECOND, SECOND):
        for _ in range(REMEMBERED):
            liveness.computed(took)
    liveness.beat("w0", "1", LONG_COMPUTE + 1, 0)
    assert liveness.silent(0)


@pytest.mark.parametrize("seed", range(20))
def test_whoever_beats_within_grace_is_never_silent_and_whoever_stops_always_is(seed: int) -> None:
    """However irregular the beats and however late the work: `computed` and the other workers play no part."""
    rng, liveness, now = Random(seed), Liveness(GRACE), 0
    for worker in ("w0", "w1"):
        liveness.present(worker, "1", 0)
    stopped_at = rng.randint(50, 150)
    for step in range(200):
        now += rng.randint(1, GRACE)
        if step < stopped_at:
            liveness.beat("w0", "1", rng.randint(0, LONG_COMPUTE), now)
        liveness.beat("w1", "1", 0, now)
        liveness.computed(rng.randint(0, 10 * LONG_COMPUTE))
        found = [worker for worker, *_ in liveness.silent(now)]
        assert "w1" not in found
        assert "w0" not in found or step >= stopped_at
    assert found == ["w0"]
