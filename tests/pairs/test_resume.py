"""A real run that was killed and resumed, once and again, ends as its simulated twin."""

from pathlib import Path

import pytest

from flame.config import World
from flame.launch.run import resume
from flame.runtime.books.checkpoint import NoCheckpoint
from flame.runtime.books.replay import replay

from .support import ASYNC, GATED, SCALARS, Harm, broken, condition, cycles, kill_aggregator, members, released, run_for_real, simulate

STATEFUL = {"loop": "async", "select": "async_oort", "server_opt": {"type": "momentum", "lr": 0.05}, "rate": "grad_aware"}
"""A pacer, a moving average, momentum: all of it goes on."""


@pytest.mark.real
@pytest.mark.parametrize("shape", [GATED, ASYNC, SCALARS, ASYNC | STATEFUL], ids=["gated", "async", "scalars", "stateful"])
def test_killed_twice_it_ends_as_its_twin(shape, tmp_path: Path):
    what, world = condition(shape), World(kind="real")
    sim = simulate(what, tmp_path)
    ui = Harm(tmp_path, 3, kill_aggregator)
    assert run_for_real(what, tmp_path, ui).verdict == "CRASH"
    assert resume(ui.path, what, world, Harm(tmp_path, 6, kill_aggregator)).verdict == "CRASH"
    real = resume(ui.path, what, world)
    assert real.verdict == "COMPLETED"
    assert cycles(real) == cycles(sim)
    assert released(real) == released(sim)
    assert [node for node in replay(real.path) if node.difference or node.skipped] == []
    assert sorted(file.stem for file in (real.path / "telemetry").glob("w0-*.jsonl")) == ["w0-0", "w0-1", "w0-2"]
    assert members(real.path) == []
    assert broken(real.path, sim.path) == []


@pytest.mark.real
def test_the_clock_goes_on_from_where_it_stood(tmp_path: Path):
    what = condition(ASYNC)
    ui = Harm(tmp_path, 8, kill_aggregator)
    run_for_real(what, tmp_path, ui)
    real = resume(ui.path, what, World(kind="real"))
    closes = real.frame("agg_round").select("wall_s", "stamp_ns").rows()
    assert [wall for wall, _ in closes] == sorted(wall for wall, _ in closes)
    assert max(wall - stamp / 1e9 for wall, stamp in closes) < 2, "the pause between the two parts is not in the clock"


@pytest.mark.real
def test_without_a_checkpoint_there_is_nothing_to_go_on_from(tmp_path: Path):
    what = condition(ASYNC)
    ui = Harm(tmp_path, 3, kill_aggregator)
    run_for_real(what, tmp_path, ui, checkpoint=0)
    with pytest.raises(NoCheckpoint):
        resume(ui.path, what, World(kind="real", checkpoint=0))
