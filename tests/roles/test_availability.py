"""Trainers that go away and come back: withheld updates, slots given up, wakes, in whole simulated runs."""

from typing import Any

import pytest

import flame
from flame.config import Condition
from flame.launch.run import Run

AWAY: dict[str, Any] = {
    "trainers": 10, "goal": 3, "concurrency": 3, "delays": {"values": [0.15, 0.2, 0.25, 0.25, 0.3, 0.3, 0.4, 0.5, 0.5, 0.6]},
    "availability": {"trace": "phone_2st", "time_scale": 6000, "abandon_s": 9000}, "stop": {"cycles": 20},
}  # fmt: skip
SYNC: dict[str, Any] = {
    "loop": "sync", "select": "random", "staleness": "same_bin",
    "commit": [{"type": "variance", "threshold": 0.3}, {"type": "cap", "max": 60}],
}  # fmt: skip
ASYNC: dict[str, Any] = {"loop": "async", "select": "async_oort", "concurrency": 6, "commit": ["agg_goal"]}


def run(runs: Any, **changes: Any) -> Run:
    return flame.run(Condition.model_validate(AWAY | changes), runs=runs)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("awareness", ["none", "oracular", "notified"])
def test_a_synchronous_cycle_asks_for_as_many_as_it_still_needs(awareness: str, seed: int, tmp_path: Any) -> None:
    """An owed update may close a cycle while others hold slots; what those held must come back to the next one."""
    done = run(tmp_path, **SYNC, awareness=awareness, seed=seed)
    assert (done.verdict, done.cycles) == ("COMPLETED", 20), done.reason


@pytest.mark.parametrize("shape", [SYNC, ASYNC], ids=["sync", "async"])
def test_what_is_withheld_counts_when_its_trainer_is_back(shape: dict[str, Any], tmp_path: Any) -> None:
    done = run(tmp_path, **shape)
    withheld = {row["id"]: row for row in done.frame("withheld").iter_rows(named=True)}
    released = {row["id"]: row for row in done.frame("accepted").iter_rows(named=True)}
    assert withheld.keys() & released.keys()
    for number in withheld.keys() & released.keys():
        assert withheld[number]["done_ns"] < withheld[number]["due_ns"] == released[number]["interval_ns"][1]


@pytest.mark.parametrize("shape", [SYNC, ASYNC], ids=["sync", "async"])
def test_a_slot_is_given_up_at_exactly_the_age_that_was_asked_for_and_its_node_stays_busy(shape: dict[str, Any], tmp_path: Any) -> None:
    done = run(tmp_path, **shape)
    abandoned = done.frame("abandoned")
    assert len(abandoned) > 0
    assert abandoned["age_ns"].unique().to_list() == [1_500_000_000]
    ends = {row["id"]: row["interval_ns"][1] for row in done.frame("accepted").iter_rows(named=True)}
    dispatched = list(done.frame("dispatch").iter_rows(named=True))
    for row in abandoned.iter_rows(named=True):
        later = [each for each in dispatched if each["trainer"] == row["trainer"] and each["id"] > row["id"]]
        assert all(each["stamp_ns"] >= ends.get(row["id"], 1 << 62) for each in later)


def test_who_is_believed_away_is_not_chosen(tmp_path: Any) -> None:
    from flame.config.availability import traces

    done = run(tmp_path, **SYNC, awareness="oracular")
    given = traces(Condition.model_validate(AWAY | SYNC))
    dispatched = done.frame("dispatch").iter_rows(named=True)
    assert all(given[row["trainer"]].available(row["stamp_ns"]) for row in dispatched)
