"""Who sits where, on made-up machines: even, the aggregator where there is room, and refused where there is none."""

import os
from collections import Counter
from collections.abc import Callable

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.config import ConfigError
from flame.core.messages import AGGREGATOR
from flame.launch.preflight.placement import Gpu, Seat, crowded, report, seats
from flame.learn.device import listed

GIB = 1 << 30


def names(count: int) -> list[str]:
    """So many workers."""
    return [f"w{number}" for number in range(count)]


def cards(*free: int) -> list[Gpu]:
    """GPUs with so many GiB free."""
    return [Gpu(f"cuda:{number}", each * GIB) for number, each in enumerate(free)]


@given(st.integers(0, 20), st.lists(st.integers(1, 80), max_size=5), st.lists(st.integers(0, 63), max_size=9, unique=True))
def test_nobody_is_fuller_than_another_by_more_than_one(workers: int, free: list[int], cores: list[int]) -> None:
    placed = seats(names(workers), cards(*free), cores)
    assert set(placed) == {*names(workers), AGGREGATOR}
    for of, places in ((lambda seat: seat.device, [f"cuda:{number}" for number in range(len(free))]), (lambda seat: seat.cores[0], cores)):
        if places:
            taken = Counter(of(placed[name]) for name in names(workers))
            counts = [taken[place] for place in places]
            assert max(counts) - min(counts) <= 1
            assert taken[of(placed[AGGREGATOR])] == min(counts)
    assert free or {seat.device for seat in placed.values()} == {"cpu"}
    assert cores or not any(seat.cores for seat in placed.values())


def test_workers_take_turns_and_the_aggregator_the_emptiest() -> None:
    placed = seats(names(4), cards(10, 10, 40))
    assert [placed[name].device for name in names(4)] == ["cuda:0", "cuda:1", "cuda:2", "cuda:0"]
    assert placed[AGGREGATOR].device == "cuda:2", "of two with one worker, where more memory is free"
    assert seats(names(2), [], [3, 5, 7]) == {"w0": Seat("cpu", (3,)), "w1": Seat("cpu", (5,)), AGGREGATOR: Seat("cpu", (7,))}


def test_too_little_free_memory_is_refused_by_device_need_and_remedy() -> None:
    gpus = cards(3, 9)
    placed = seats(names(4), gpus)
    (issue,) = crowded(placed, gpus, 2 * GIB)
    assert issue.blocking
    assert issue.what == "`cuda:0` has 3072 MiB free, and 2 processes on it need about 4096 MiB"
    assert "lower `--workers`" in issue.remedy
    assert [*crowded(placed, gpus, GIB)] == []


@pytest.mark.parametrize(
    ("asked", "count", "wanted"),
    [
        ("cuda:all", 3, ["cuda:0", "cuda:1", "cuda:2"]),
        ("cuda:2,0,2", 3, ["cuda:2", "cuda:0"]),
        ("auto", 2, ["cuda:0", "cuda:1"]),
        ("auto", 0, ["cpu"]),
    ],
)
def test_gpus_are_named_or_all(asked: str, count: int, wanted: list[str]) -> None:
    assert listed(asked, "arrival", lambda: count) == wanted


@pytest.mark.parametrize(
    ("asked", "count", "says"), [("cuda:0,1,2", 2, "there is only cuda:0 to cuda:1"), ("cuda:all", 0, "there is none here")]
)
def test_more_gpus_than_there_are_is_refused(asked: str, count: int, says: str) -> None:
    with pytest.raises(ConfigError, match=says) as error:
        listed(asked, "arrival", lambda: count)
    assert "give `device: auto`" in error.value.hint


def test_the_report_names_who_is_where_and_what_is_idle() -> None:
    placed = seats(names(3), cards(8, 8))
    assert report(placed, ["cuda:0", "cuda:1", "cuda:2"]) == ["cuda:0: w0, w2", "cuda:1: w1, aggregator", "idle: cuda:2"]
    assert report(seats(names(3), [])) == []
    assert report(seats(names(1), [], [0, 4])) == ["cores: w0 0, aggregator 4"]
    lopsided = {**{name: Seat("cuda:0") for name in names(3)}, AGGREGATOR: Seat("cuda:1")}
    assert report(lopsided)[-1] == "uneven: the fullest device has 3 workers more than the emptiest"


@pytest.mark.real
@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="this system pins nobody")
def test_pinned_processes_keep_to_their_cores(flame: Callable[..., object], monkeypatch: pytest.MonkeyPatch) -> None:
    from flame.launch import run

    seen: dict[str, list[int]] = {}
    until_end = run.Watch.until_end

    def looks(self: run.Watch) -> object:
        assert all(child.pipe.poll(60) for child in self._fleet.children.values()), "up, and past sitting down"
        seen.update({name: psutil.Process(child.process.pid).cpu_affinity() for name, child in self._fleet.children.items()})
        return until_end(self)

    monkeypatch.setattr(run.Watch, "until_end", looks)
    flame("run", "small", "--mode", "real", "--only", "plain", "--pin", "--yes")
    cores = sorted(os.sched_getaffinity(0))
    assert seen["w0"] == [cores[0]]
    assert seen["w1"] == [cores[1 % len(cores)]]
    assert len(seen[AGGREGATOR]) == 1
