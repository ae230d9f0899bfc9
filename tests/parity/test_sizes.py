"""K and C that change: what the records say of them is looked at cycle by cycle."""

from pathlib import Path
from shutil import rmtree
from typing import Any

import pytest

from flame.launch.run import run
from flame.telemetry.reader import COMPACTED
from flame.telemetry.rundir import RunDir, RunPair
from parity.derived.sizes import over_concurrency, sizes_hold, sizes_of
from parity.engine import Options, check
from parity.evidence import Run
from parity.invariants.check import check_run
from parity.reports.terminal import briefly
from parity.rungs import LADDER
from tests.parity.edits import Edit, cycle_is
from tests.parity.fixtures import condition
from tests.parity.test_report import text

TRACKING: dict[str, Any] = {
    "loop": "async", "trainers": 6, "goal": 2, "concurrency": 3, "staleness": "accept",
    "sizes": {"type": "var_tracking", "target": 2, "step": 1, "window": 1, "goal_min": 1, "goal_max": 4},
    "commit": [{"type": "pool_size", "n": 7}], "stop": {"cycles": 20},
}  # fmt: skip
"""K goes up while the first bin drags on, then rests where 7 uploads take two cycles."""


@pytest.fixture
def tracked(tmp_path: Path) -> RunDir:
    return RunDir(run(condition(**TRACKING), runs=tmp_path).path)


def reread(path: Path) -> Run:
    """The run as it lies there now: what was compacted was made of other lines of the same length."""
    rmtree(path / "telemetry" / COMPACTED)
    return Run("sim", RunDir(path))


@pytest.mark.usefixtures("real_replay")
def test_a_run_whose_sizes_change_keeps_every_law_and_is_its_own_twin(tracked: RunDir) -> None:
    sizes = sizes_of(Run("sim", tracked))
    assert sizes["goal"].n_unique() > 1
    assert sizes["concurrency"].n_unique() > 1
    assert [(ruling.law.name, ruling.look.faults) for ruling in check_run(tracked) if ruling.holds is False] == []
    report = check(RunPair(tracked, tracked), LADDER, Options(force=True))
    assert {result.rung.id for result in report.results if result.verdict in ("FAIL", "ERROR")} == set()


def test_slots_are_held_against_the_c_of_their_own_cycle(tracked: RunDir) -> None:
    """The first cycles have C = 3; the largest C of the run would let four pass."""
    first = tracked.telemetry.frame("dispatch").row(2, named=True)
    assert (first["cycle"], first["in_flight"]) == (0, 3)
    assert max(sizes.concurrency for sizes in tracked.condition.possible_sizes) == 6
    Edit(tracked).set("dispatch", lambda record: record["id"] == first["id"], in_flight=4)
    assert over_concurrency(reread(tracked.path)) == [f"id {first['id']} (cycle 0): 4 in flight, C = 3"]


def test_sizes_that_change_within_a_cycle_or_that_the_condition_does_not_allow_are_faults(tracked: RunDir) -> None:
    assert not sizes_hold(Run("sim", tracked)).faults
    Edit(tracked).set("agg_round", cycle_is(0), goal=1, concurrency=3)
    assert sizes_hold(reread(tracked.path)).faults == [
        "cycle 0 has K 2, C 3, and K 1, C 3 in its agg_round", "cycle 0 has K 1, C 3, which its `sizes` don't allow",
    ]  # fmt: skip


@pytest.mark.usefixtures("real_replay")
def test_a_report_says_in_which_bounds_sizes_may_change(tracked: RunDir) -> None:
    assert "sizes var_tracking(" in briefly(tracked.condition)
    assert "N 6  K 1..4  C 2..6  async" in text(check(RunPair(tracked, tracked), LADDER, Options(force=True)))
