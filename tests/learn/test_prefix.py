"""The prefix cache: what is kept, when it can't be, and that it says so."""

import numpy as np
import pytest

from flame.config import Condition
from flame.learn import prefix
from flame.learn.prefix import PrefixCache
from flame.learn.text import bins_in_reach

ROWS = np.array([3, 1, 2])
KEY = {"model": "m", "cut": "layer 4"}


def doubled(rows: np.ndarray) -> np.ndarray:
    return np.stack([rows * 2.0, rows * 3.0]).astype(np.float32)


def test_a_batch_is_computed_once_and_read_by_whoever_comes_later(tmp_path):
    first, later = (PrefixCache(tmp_path, KEY, doubled) for _ in range(2))
    computed, read = first.get(ROWS), later.get(ROWS)
    assert np.array_equal(computed, read)
    assert computed.dtype == read.dtype
    assert ((first.hits, first.misses), (later.hits, later.misses)) == ((0, 1), (1, 0))
    assert isinstance(read, np.memmap)
    assert not read.flags.writeable


def test_the_order_of_rows_and_the_batch_are_part_of_the_name(tmp_path):
    cache = PrefixCache(tmp_path, KEY, doubled)
    for rows in (ROWS, ROWS[::-1], ROWS[:2]):
        assert np.array_equal(cache.get(rows), doubled(rows))
    assert cache.misses == 3


def test_another_key_is_another_cache(tmp_path):
    one, other = PrefixCache(tmp_path, KEY, doubled), PrefixCache(tmp_path, KEY | {"cut": "pooled"}, lambda rows: doubled(rows) + 1)
    assert not np.array_equal(one.get(ROWS), other.get(ROWS))
    assert other.hits == 0


def test_files_are_whole_and_no_temporary_is_left(tmp_path):
    cache = PrefixCache(tmp_path, KEY, doubled)
    cache.get(ROWS)
    assert sorted(path.suffix for path in cache.folder.iterdir()) == [".json", ".npy"]


def test_missing_names_each_batch_once(tmp_path):
    cache = PrefixCache(tmp_path, KEY, doubled)
    cache.get(ROWS)
    assert [rows.tolist() for rows in cache.missing([ROWS, ROWS[:2], ROWS[:2]])] == [[3, 1]]


def test_switched_off_it_computes_each_time_and_keeps_nothing(tmp_path):
    cache = PrefixCache(tmp_path, KEY, doubled, note="off, as asked")
    cache.get(ROWS)
    assert np.array_equal(cache.get(ROWS), doubled(ROWS))
    assert (cache.hits, cache.misses, cache.missing([ROWS])) == (0, 2, [])
    assert not cache.folder.exists()


def test_a_folder_that_cannot_be_written_switches_it_off_and_is_named(tmp_path):
    (tmp_path / "file").write_text("in the way")
    cache = PrefixCache(tmp_path / "file", KEY, doubled)
    assert np.array_equal(cache.get(ROWS), doubled(ROWS))
    assert "can't be written" in (cache.note or "")


def test_a_torn_file_is_computed_again(tmp_path):
    cache = PrefixCache(tmp_path, KEY, doubled)
    cache.get(ROWS)
    (path,) = cache.folder.glob("*.npy")
    path.write_bytes(path.read_bytes()[:100])
    assert np.array_equal(cache.get(ROWS), doubled(ROWS))
    assert np.array_equal(PrefixCache(tmp_path, KEY, doubled).get(ROWS), doubled(ROWS))


def test_a_full_disk_switches_it_off_and_is_named(tmp_path, monkeypatch):
    cache = PrefixCache(tmp_path / "not" / "yet", KEY, doubled)
    cache.make_room(1)
    assert cache.note is None
    monkeypatch.setattr(prefix, "SPARE_BYTES", 1 << 60)
    cache.make_room(5 << 20)
    assert "needs 5 MiB" in (cache.note or "")


@pytest.mark.parametrize(
    ("stop", "reach"),
    [
        ({"cycles": 5}, 6),
        ({"commits": 3}, 4),
        ({"accepts": 40}, 5),
        ({"cycles": 9, "commits": 2}, 3),
        ({"runtime_s": 9.0}, 20),
        ({"commits": 99}, 20),
    ],
)
def test_the_bins_in_reach_follow_the_stop_rules(stop, reach):
    assert bins_in_reach(Condition(stop=stop, goal=10), 20) == reach


def test_the_bins_in_reach_are_those_of_the_smallest_cycles():
    sizes = {"type": "var_tracking", "goal_min": 5, "goal_max": 10}
    assert bins_in_reach(Condition(stop={"accepts": 40}, goal=10, sizes=sizes), 20) == 9
