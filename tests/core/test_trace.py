"""Traces answer as a scan from the start does, in each lap."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.trace import ALWAYS, NEVER, Event, State, Trace

STATES: list[State] = ["AVL_TRAIN", "AVL_EVAL", "UN_AVL"]
EVENTS = st.lists(st.tuples(st.integers(-3, 30), st.sampled_from(STATES)), max_size=8)
PERIODS = st.none() | st.integers(1, 35)
FAR = 150
"""Beyond every event and, for a period of 35 at most, some laps."""


def scanned(events: list[Event], period: int | None, t: int) -> State:
    """The rule, as it is written: the last event at or before t holds, before the first AVL_TRAIN."""
    within = t if period is None else t % period
    held: State = "AVL_TRAIN"
    for instant, state in sorted(events, key=lambda event: event[0]):
        if instant <= within:
            held = state
    return held


@given(EVENTS, PERIODS, st.integers(0, 100))
def test_the_last_event_holds(events: list[Event], period: int | None, t: int) -> None:
    trace = Trace.of(events, period)
    assert trace.state(t) == scanned(events, period, t)
    assert trace.available(t) == (trace.state(t) == "AVL_TRAIN")


@given(EVENTS, PERIODS, st.integers(0, 100))
def test_the_next_change_is_the_first_other_state(events: list[Event], period: int | None, t: int) -> None:
    here = scanned(events, period, t)
    wanted = next((later for later in range(t + 1, t + FAR) if scanned(events, period, later) != here), None)
    assert Trace.of(events, period).next_change(t) == wanted


@given(EVENTS, PERIODS, st.integers(0, 100))
def test_the_next_available_instant_is_the_first_for_training(events: list[Event], period: int | None, t: int) -> None:
    wanted = next((later for later in range(t, t + FAR) if scanned(events, period, later) == "AVL_TRAIN"), None)
    assert Trace.of(events, period).next_available(t) == wanted


@given(EVENTS, EVENTS, PERIODS)
def test_equal_behaviour_is_an_equal_value(mine: list[Event], yours: list[Event], period: int | None) -> None:
    same = all(scanned(mine, period, t) == scanned(yours, period, t) for t in range(period or 40))
    assert (Trace.of(mine, period) == Trace.of(yours, period)) == same


@given(EVENTS, PERIODS)
def test_one_form_is_kept(events: list[Event], period: int | None) -> None:
    trace = Trace.of(events, period)
    assert Trace.of(zip(trace.instants, trace.states, strict=True), trace.period) == trace
    assert hash(trace) == hash(Trace(trace.instants, trace.states, trace.period))


def test_without_events_a_device_is_always_there() -> None:
    assert Trace.of([(5, "AVL_TRAIN")], 9) == ALWAYS
    assert (ALWAYS.state(10**18), ALWAYS.next_change(0), ALWAYS.next_available(7)) == ("AVL_TRAIN", None, 7)


def test_a_device_that_ends_away_never_comes_back() -> None:
    ends = Trace.of([(10, "UN_AVL")])
    assert (ends.next_available(9), ends.next_available(10), ends.next_change(10)) == (9, None, None)
    assert (NEVER.next_available(0), NEVER.next_change(0)) == (None, None)


def test_evaluation_only_is_not_available_for_training() -> None:
    trace = Trace.of([(0, "UN_AVL"), (10, "AVL_EVAL"), (20, "AVL_TRAIN")])
    assert not trace.available(15)
    assert (trace.next_change(5), trace.next_available(5)) == (10, 20)


def test_a_lap_that_ends_as_it_begins_has_no_change_between() -> None:
    trace = Trace.of([(10, "UN_AVL"), (20, "AVL_TRAIN")], 100)
    assert (trace.next_change(20), trace.next_change(99), trace.next_change(100), trace.next_available(115)) == (110, 110, 110, 120)


def test_a_lap_that_ends_otherwise_changes_at_its_end() -> None:
    trace = Trace.of([(10, "UN_AVL")], 100)
    assert (trace.next_change(10), trace.state(99), trace.state(100), trace.next_available(399)) == (100, "UN_AVL", "AVL_TRAIN", 400)


def test_of_several_states_at_one_instant_the_last_stands() -> None:
    assert Trace.of([(25, "UN_AVL"), (25, "AVL_TRAIN"), (3, "AVL_EVAL")]) == Trace.of([(3, "AVL_EVAL"), (25, "AVL_TRAIN")])


@pytest.mark.parametrize(
    ("instants", "states", "period"),
    [
        ((), (), None),
        ((1,), ("UN_AVL",), None),
        ((0, 5), ("UN_AVL",), None),
        ((0, 5, 5), ("UN_AVL", "AVL_EVAL", "UN_AVL"), None),
        ((0, 5), ("UN_AVL", "UN_AVL"), None),
        ((0, 5), ("UN_AVL", "AVL_EVAL"), 5),
        ((0,), ("UN_AVL",), 5),
    ],
)
def test_another_form_is_refused(instants: tuple[int, ...], states: tuple[State, ...], period: int | None) -> None:
    with pytest.raises(ValueError, match="trace"):
        Trace(instants, states, period)


def test_a_period_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="over 0, not 0"):
        Trace.of([(3, "UN_AVL")], 0)
