"""Traces of each kind: what they mean, what is refused, and statistics held against the published ones."""

import json
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.config import Condition, ConfigError, availability
from flame.config.availability import GRID, HORIZON, traces
from flame.config.condition import Availability
from flame.core.time import SECOND, in_seconds, seconds
from flame.core.trace import ALWAYS, NEVER, Event, State, Trace
from tests.recorded import shared

PHONES = "devices/device_traces_300x6d.json"
GENERATED = ["syn_10", "syn_20", "syn_50", "phone_2st", "phone_3st_50", "phone_3st_75"]


def made(trainers: int = 3, seed: int = 1, **availability: Any) -> Mapping[str, Trace]:
    """The traces of a condition."""
    plain = {"stop": {"cycles": 1}, "trainers": trainers, "goal": 1, "concurrency": 1, "seed": seed, "availability": availability}
    return traces(Condition.model_validate(plain))


def refusal(act: Callable[[], object]) -> str:
    """The message of the ConfigError that `act` raises."""
    with pytest.raises(ConfigError) as caught:
        act()
    return str(caught.value)


@pytest.fixture
def store(tmp_path: Path) -> Callable[[Any], str]:
    """Writes a JSON file and gives its path."""

    def write(value: Any) -> str:
        (tmp_path / "traces.json").write_text(json.dumps(value))
        return str(tmp_path / "traces.json")

    return write


# ---- statistics


def shares(found: Iterable[Trace]) -> dict[State, float]:
    """The share of time in each state, over one lap of each trace."""
    spent: dict[State, int] = {"AVL_TRAIN": 0, "AVL_EVAL": 0, "UN_AVL": 0}
    for trace in found:
        for (begin, end), state in zip(pairwise((*trace.instants, trace.period or seconds(HORIZON))), trace.states, strict=True):
            spent[state] += end - begin
    return {state: time / sum(spent.values()) for state, time in spent.items()}


def stays(found: Iterable[Trace]) -> tuple[list[float], list[float]]:
    """Seconds of the sessions and of the gaps that lie wholly within a lap."""
    lengths: tuple[list[float], list[float]] = ([], [])
    for trace in found:
        training = [(instant, state == "AVL_TRAIN") for instant, state in zip(trace.instants, trace.states, strict=True)]
        turns = [later for earlier, later in pairwise(training) if earlier[1] != later[1]]
        for (begin, session), (end, _) in pairwise(turns):
            lengths[0 if session else 1].append(in_seconds(end - begin))
    return lengths


def quantiles(values: list[float], *at: float) -> list[float]:
    """The quantiles of values."""
    return [float(value) for value in np.quantile(values, at)]


# ---- off, and what all have in common


@pytest.mark.parametrize("availability", [{}, {"trace": "syn_0"}, {"time_scale": 7, "abandon_s": 90}])
def test_off_is_always(availability: dict[str, Any]) -> None:
    assert made(**availability) == {"t0": ALWAYS, "t1": ALWAYS, "t2": ALWAYS}


@pytest.mark.parametrize("kind", GENERATED)
def test_a_trace_hangs_on_the_node_alone(kind: str) -> None:
    few, more = made(11, trace=kind), made(12, seed=2, trace=kind)
    assert list(few) == [f"t{number:02}" for number in range(11)]
    assert all(more[node] == trace for node, trace in few.items())
    assert len(set(few.values())) == 11


@pytest.mark.parametrize("kind", GENERATED)
@given(scale=st.sampled_from([1, 2, 60, 3600, 0.5]), t=st.integers(0, 2 * HORIZON))
def test_time_scale_divides_every_instant(kind: str, scale: float, t: int) -> None:
    plain, scaled = made(1, trace=kind)["t0"], made(1, trace=kind, time_scale=scale)["t0"]
    assert scaled.instants == tuple(round(instant / scale) for instant in plain.instants)
    assert scaled.period == seconds(HORIZON / scale)
    assert scaled.state(round((t + 0.5) * SECOND / scale)) == plain.state(round((t + 0.5) * SECOND))


def test_time_scale_divides_what_is_waited_before_a_slot_is_given_up() -> None:
    assert Availability(abandon_s=90).abandon_ns == 90 * SECOND
    assert Availability(abandon_s=90, time_scale=60).abandon_ns == 1.5 * SECOND
    assert Availability(trace="syn_10", time_scale=60).abandon_ns is None


# ---- synthetic


@pytest.mark.parametrize(("kind", "share"), [("syn_10", 0.1), ("syn_20", 0.2), ("syn_50", 0.5)])
def test_a_synthetic_trace_is_away_for_its_share_of_a_grid(kind: str, share: float) -> None:
    found = list(made(40, trace=kind).values())
    assert shares(found)["UN_AVL"] == pytest.approx(share, abs=0.01)
    assert all(instant % (GRID * SECOND) == 0 for trace in found for instant in trace.instants)
    assert {trace.period for trace in found} == {HORIZON * SECOND}
    gaps = stays(found)[1]
    assert sum(gaps) / len(gaps) == pytest.approx(GRID / (1 - share), rel=0.05), "cells are away by themselves"


# ---- phones that are made


def test_made_phones_meet_the_published_quantiles() -> None:
    found = list(made(600, trace="phone_2st").values())
    sessions, gaps = stays(found)
    assert quantiles(sessions, 0.5, 0.75) == [pytest.approx(615, rel=0.1), pytest.approx(54 * 60, rel=0.1)]
    assert quantiles(gaps, 0.5) == [pytest.approx(144, rel=0.25)], "few gaps are near the median, so it moves easily"
    assert quantiles(gaps, 0.75, 0.9) == [pytest.approx(3.1 * 3600, rel=0.1), pytest.approx(11.7 * 3600, rel=0.1)]
    assert shares(found)["AVL_TRAIN"] == pytest.approx(0.16, abs=0.015)


@pytest.mark.parametrize(("kind", "published"), [("phone_3st_50", (0.16, 0.35, 0.49)), ("phone_3st_75", (0.16, 0.19, 0.65))])
def test_made_phones_with_an_evaluation_tier_meet_the_published_shares(kind: str, published: tuple[float, ...]) -> None:
    assert list(shares(made(600, trace=kind).values()).values()) == pytest.approx(published, abs=0.02)


@given(number=st.integers(0, 299), t=st.integers(0, HORIZON * SECOND))
def test_a_phone_has_the_same_sessions_with_and_without_an_evaluation_tier(number: int, t: int) -> None:
    node = f"t{number:03}"
    two, low, high = (EACH[kind][node].state(t) for kind in ("phone_2st", "phone_3st_50", "phone_3st_75"))
    assert (two == "AVL_TRAIN") == (low == "AVL_TRAIN") == (high == "AVL_TRAIN")
    assert low == "AVL_EVAL" or high != "AVL_EVAL"
    assert two != "AVL_EVAL"


EACH = {kind: made(300, trace=kind) for kind in ("phone_2st", "phone_3st_50", "phone_3st_75")}


def test_made_phones_have_no_beginning() -> None:
    quarters = [sum(trace.available(seconds(HORIZON * part / 8)) for trace in EACH["phone_2st"].values()) for part in range(8)]
    assert all(25 <= count <= 75 for count in quarters), f"about 48 of 300 are there at any time, not {quarters}"


# ---- phones that were recorded


@pytest.mark.parametrize("key", ["2st", "3st_50", "3st_75"])
def test_made_phones_are_like_recorded_ones(key: str) -> None:
    recorded = list(made(300, trace="file", path=str(shared(PHONES)), key=key).values())
    sessions, gaps = stays(recorded)
    ours, others = stays(EACH[f"phone_{key}"].values())
    assert quantiles(ours, 0.25, 0.75, 0.9) == [pytest.approx(value, rel=0.25) for value in quantiles(sessions, 0.25, 0.75, 0.9)]
    assert quantiles(others, 0.25, 0.75, 0.9) == [pytest.approx(value, rel=0.25) for value in quantiles(gaps, 0.25, 0.75, 0.9)]
    there = shares(recorded)["AVL_TRAIN"]
    assert there == pytest.approx(0.19, abs=0.02), "over each one's own record; 0.16 with the time after it"


def test_a_recorded_phone_loses_its_forced_start_and_repeats_at_its_own_end(store: Callable[[Any], str]) -> None:
    client = {"2st": [[0, 2], [300, 0], [400, 2], [450, 0], [500, 2]], "3st_50": [[0, 2], [250, 1], [900, 0]], "delay": 4}
    path = store({"clients": {"7": client}})
    away: list[Event] = [(0, "UN_AVL"), (100 * SECOND, "AVL_TRAIN"), (150 * SECOND, "UN_AVL")]
    assert made(1, trace="file", path=path) == {"t0": Trace.of(away, 200 * SECOND)}
    assert made(1, trace="file", path=path, time_scale=100)["t0"].next_available(2 * SECOND) == 3 * SECOND
    assert made(1, trace="file", path=path, key="3st_50") == {"t0": Trace.of([(0, "AVL_EVAL")])}
    assert made(1, trace="file", path=path, skip_s=0)["t0"].next_change(0) == 300 * SECOND


def test_a_phone_without_a_record_beyond_its_start_is_never_there(store: Callable[[Any], str]) -> None:
    path = store({"clients": {"1": {"2st": [[0, 2], [300, 0]]}, "2": {"2st": [[0, 2], [300, 0], [300, 2]]}, "3": {"2st": []}}})
    assert list(made(3, trace="file", path=path).values()) == [NEVER, ALWAYS, ALWAYS]


def test_clients_are_dealt_in_the_order_of_their_numbers(store: Callable[[Any], str]) -> None:
    held = {str(number): {"2st": [[0, 0], [number, 2], [100, 0]]} for number in (10, 9, 30)}
    path = store(held)
    found = made(3, trace="file", path=path, skip_s=0)
    assert [trace.next_available(0) for trace in found.values()] == [9 * SECOND, 10 * SECOND, 30 * SECOND]


def test_too_few_clients_are_shared_only_if_that_is_said(store: Callable[[Any], str]) -> None:
    path = store({"clients": {"1": {"2st": [[0, 0]]}, "2": {"2st": [[0, 2]]}}})
    message = refusal(lambda: made(3, trace="file", path=path))
    assert "has 2 clients, fewer than `trainers` N = 3" in message
    assert "`availability.reuse: true`" in message
    assert list(made(3, trace="file", path=path, reuse=True).values()) == [NEVER, ALWAYS, NEVER]


def test_intervals_of_fedscale_are_read(store: Callable[[Any], str]) -> None:
    client = {"duration": 60, "active": [0, 50], "inactive": [30, 80], "finish_time": 100, "model": "CPH1801"}
    late = {"duration": 5, "active": [20], "inactive": [25], "finish_time": 40, "model": "x"}
    found = list(made(2, trace="file", path=store({"1": client, "2": late})).values())
    s = SECOND
    assert found[0] == Trace.of([(30 * s, "UN_AVL"), (50 * s, "AVL_TRAIN"), (80 * s, "UN_AVL")], 100 * s)
    assert (found[1].next_available(0), found[1].next_available(25 * s)) == (20 * s, 60 * s)
    assert made(1, trace="file", path=store({"1": client}), skip_s=50, time_scale=10)["t0"].next_change(0) == 3 * s


ODD: list[tuple[Any, str]] = [
    ({"1": {"2st": [[0, 3]]}}, "holds `[0, 3]`"),
    ({"1": {"2st": [[-1, 0]]}}, "holds `[-1, 0]`"),
    ({"1": {"2st": [[0, 2, 1]]}}, "holds `[0, 2, 1]`"),
    ({"1": {"2st": [[0, "UN_AVL"]]}}, 'holds `[0, "UN_AVL"]`'),
    ({"1": {"2st": 5}}, "holds `5`"),
    ({"1": 5}, "client `1` of"),
    ({"clients": {}}, "holds no clients"),
    ([1], "holds no clients"),
    ({"1": {"active": [1], "inactive": [], "finish_time": 9}}, "`finish_time`"),
    ({"1": {"active": [1], "inactive": [2]}}, "`finish_time`"),
    ({"1": {"active": ["x"], "inactive": [2], "finish_time": 9}}, 'holds `"x"`'),
]


@pytest.mark.parametrize(("held", "said"), ODD, ids=[said for _, said in ODD])
def test_what_is_no_trace_is_refused(store: Callable[[Any], str], held: Any, said: str) -> None:
    message = refusal(lambda: made(1, trace="file", path=store(held)))
    assert message.startswith("config error: `availability.path`: ")
    assert said in message
    assert "\nhint: " in message


def test_a_key_that_a_client_lacks_is_named(store: Callable[[Any], str]) -> None:
    message = refusal(lambda: made(1, trace="file", path=store({"1": {"3st_50": [], "delay": 3}}), key="3st_75"))
    assert "unknown key `3st_75`" in message
    assert "did you mean `3st_50`? Known keys: 3st_50" in message


def test_a_missing_file_is_named() -> None:
    assert "`availability.path`: there is no file `none.json`" in refusal(lambda: made(1, trace="file", path="none.json"))


def test_a_trace_is_made_once_and_when_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[str] = []
    plain = availability.phone
    monkeypatch.setattr(availability, "phone", lambda node, *rest: (drawn.append(node), plain(node, *rest))[1])
    found = made(100_000, trace="phone_2st")
    assert len(found) == 100_000
    assert "t99999" in found
    assert list(found)[:2] == ["t00000", "t00001"]
    assert drawn == [], "to say who is there takes no trace"
    assert found["t00007"] is found.get("t00007")
    assert drawn == ["t00007"]
    assert found.get("t7") is None


def test_trainers_that_share_a_recorded_client_share_its_trace(tmp_path: Path) -> None:
    file = tmp_path / "two.json"
    file.write_text('{"1": {"2st": [[400, 0], [500, 2]]}, "2": {"2st": [[0, 2], [600, 0]]}}')
    found = made(5, trace="file", path=str(file), reuse=True)
    assert found["t0"] is found["t2"] is found["t4"]
    assert found["t1"] is found["t3"]
    assert found["t0"] != found["t1"]
