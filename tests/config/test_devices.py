"""Delays from each source: what the files may hold, what is refused, and the statistics of the reference."""

import json
import math
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from statistics import mean, median
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.config import Condition, ConfigError
from flame.config.devices import profiles
from flame.config.draws import Mixture, Piece
from flame.config.layers import merge
from flame.core.time import in_seconds, seconds
from tests.recorded import shared

REFERENCE = (53, 68, 65, 114)
"""Of 300 trainers: fast (4 s at most), medium (8), slow (12), very slow."""


def drawn(trainers: int = 3, seed: int = 1, **delays: Any) -> list[float]:
    """The delays of a condition, in seconds, in the order of the trainers."""
    plain = {"stop": {"cycles": 1}, "trainers": trainers, "goal": 1, "concurrency": 1, "seed": seed, "delays": delays}
    return [in_seconds(profile.delay_ns) for profile in profiles(Condition.model_validate(plain)).values()]


def classes(delays: list[float]) -> list[int]:
    """How many of each class, of delays in whole seconds as the reference has them."""
    bounds = (0, 4, 8, 12, math.inf)
    return [sum(low < round(delay) <= high for delay in delays) for low, high in pairwise(bounds)]


def refusal(act: Callable[[], object]) -> str:
    """The message of the ConfigError that `act` raises."""
    with pytest.raises(ConfigError) as caught:
        act()
    return str(caught.value)


@pytest.fixture
def store(tmp_path: Path) -> Callable[[Any], str]:
    """Writes a JSON file and gives its path."""

    def write(value: Any) -> str:
        (tmp_path / "devices.json").write_text(json.dumps(value))
        return str(tmp_path / "devices.json")

    return write


# ---- values and laws


@given(st.lists(st.floats(0.01, 1000), min_size=1, max_size=5), st.integers(1, 12), st.floats(0.1, 10))
def test_values_are_taken_in_turn(values: list[float], trainers: int, factor: float) -> None:
    wanted = [seconds(values[number % len(values)] / factor) for number in range(trainers)]
    assert [seconds(delay) for delay in drawn(trainers, values=values, factor=factor)] == wanted


def test_the_lognormal_has_the_statistics_of_the_reference() -> None:
    delays = drawn(3000, lognormal={})
    assert mean(delays) == pytest.approx(12.1, abs=0.4)
    assert median(delays) == pytest.approx(10, abs=1)
    assert (min(delays), max(delays)) == (2, 56)
    assert classes(delays) == pytest.approx([10 * count for count in REFERENCE], rel=0.4)


def test_the_recorded_delays_have_the_statistics_of_the_reference() -> None:
    delays = drawn(300, registry=str(shared("devices/device_traces_300x6d.json")))
    assert (round(mean(delays), 1), median(delays), min(delays), max(delays)) == (12.1, 10, 2, 56)
    assert tuple(classes(delays)) == REFERENCE


def test_devices_belong_to_the_condition_and_not_to_the_seed() -> None:
    assert drawn(20, seed=1, lognormal={}) == drawn(20, seed=2, lognormal={})
    assert len(set(drawn(20, lognormal={}))) == 20


def test_a_mixture_meets_its_mean_and_what_covers_an_instant_is_longer() -> None:
    law = Mixture((Piece(0.3, 5.0, 0.5), Piece(0.7, 50.0, 0.8)))
    values = [law.draw("test", number) for number in range(20_000)]
    assert mean(values) == pytest.approx(law.mean, rel=0.03)
    assert law.covering().mean == pytest.approx(mean(value**2 for value in values) / mean(values), rel=0.05)
    assert sum(piece.share for piece in law.covering().pieces) == pytest.approx(1)


# ---- registries


@pytest.mark.parametrize(
    "held",
    [
        {"t2": 3, "t0": 1, "t1": 2},
        {"10": 3, "2": 2, "1": 1},
        [1, 2, 3],
        {"clients": {"1": {"delay": 1}, "3": {"delay": 3.0}, "2": {"delay": 2}}},
        {"t0": 1, "t1": 2, "t2": 3, "t3": 4},
    ],
)
def test_a_registry_is_dealt_by_name_or_in_order(store: Callable[[Any], str], held: Any) -> None:
    assert drawn(registry=store(held)) == [1, 2, 3]
    assert drawn(registry=store(held), factor=2) == [0.5, 1, 1.5]


def test_a_short_registry_is_dealt_again_only_if_that_is_said(store: Callable[[Any], str]) -> None:
    path = store([1, 2])
    message = refusal(lambda: drawn(registry=path))
    assert "has 2 clients, fewer than `trainers` N = 3" in message
    assert "`trainers: 2`" in message
    assert "`delays.reuse: true`" in message
    assert drawn(registry=path, reuse=True) == [1, 2, 1]


@pytest.mark.parametrize(
    ("held", "said"),
    [
        ([1, 0, 2], "holds the delay `0`"),
        ([1, "x", 2], 'holds the delay `"x"`'),
        ([1, True, 2], "holds the delay `true`"),
        ([1, None, 2], "holds the delay `null`"),
        ({"clients": {str(number): {"2st": []} for number in range(3)}}, "holds the delay `null`"),
        ({}, "holds no clients"),
        (3, "holds no clients"),
    ],
)
def test_what_is_no_delay_is_refused(store: Callable[[Any], str], held: Any, said: str) -> None:
    message = refusal(lambda: drawn(registry=store(held)))
    assert message.startswith("config error: `delays.registry`: ")
    assert said in message
    assert "\nhint: " in message


def test_a_file_that_is_missing_or_no_json_is_named(tmp_path: Path) -> None:
    assert "`delays.registry`: there is no file `none.json`" in refusal(lambda: drawn(registry="none.json"))
    (tmp_path / "a.json").write_text("{")
    assert "can't be read as JSON" in refusal(lambda: drawn(registry=str(tmp_path / "a.json")))
    assert "can't be read" in refusal(lambda: drawn(registry=str(tmp_path)))


# ---- scores


def test_a_phone_of_twice_the_score_takes_half_the_time(store: Callable[[Any], str]) -> None:
    path = store([{"CPU_F_AI_Score": "100"}, {"CPU_F_AI_Score": "200"}, {"CPU_F_AI_Score": 400}, {"CPU_F_AI_Score": ""}, {}])
    delays = drawn(60, ai_benchmark={"path": path, "reference_s": 6})
    assert set(delays) == {12, 6, 3}
    assert drawn(60, ai_benchmark={"path": path, "reference_s": 6}) == delays


def test_the_phones_of_ai_benchmark() -> None:
    delays = drawn(2000, ai_benchmark={"path": str(shared("devices/ai_benchmark_devices.json"))})
    assert median(delays) == pytest.approx(10, rel=0.1)
    assert [min(delays), max(delays)] == pytest.approx([10 * 1548 / 4310, 10 * 1548 / 105])


def test_wrong_scores_are_refused(store: Callable[[Any], str]) -> None:
    rows = store([{"CPU_F_AI_Score": "fast"}])
    assert 'holds the score `"fast"`' in refusal(lambda: drawn(ai_benchmark={"path": rows}))
    message = refusal(lambda: drawn(ai_benchmark={"path": rows, "score": "CPU_AI_Score"}))
    assert "unknown column `CPU_AI_Score`" in message
    assert "did you mean `CPU_F_AI_Score`?" in message
    assert "is no list of phones" in refusal(lambda: drawn(ai_benchmark={"path": store({})}))


# ---- one source


def test_the_source_of_the_upper_layer_stands() -> None:
    below = {"delays": {"values": [1], "factor": 2}}
    assert merge(below, {"delays": {"registry": "a"}}) == {"delays": {"registry": "a", "factor": 2}}
    assert merge(below, {"delays": {"ai_benchmark": None}}) == {"delays": {"values": [1], "ai_benchmark": None, "factor": 2}}


def test_two_sources_are_refused() -> None:
    with pytest.raises(ValueError, match="exactly one of `values`, `lognormal`, `registry` and `ai_benchmark`"):
        drawn(values=[1], registry="a")
    with pytest.raises(ValueError, match="exactly one of"):
        drawn()
