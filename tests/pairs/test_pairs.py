"""Pairs: for real over MQTT and simulated, equal in every cycle, every released row, every model bit."""

import shutil
from pathlib import Path

import pytest

from flame.runtime.replay import replay

from .support import ASYNC, GATED, condition, cycles, released, run_for_real, simulate

MOSQUITTO = pytest.param(
    "mosquitto", marks=pytest.mark.skipif(shutil.which("mosquitto") is None, reason="mosquitto isn't installed: apt-get install mosquitto")
)


@pytest.mark.real
@pytest.mark.parametrize("broker", ["embedded", MOSQUITTO])
@pytest.mark.parametrize("shape", [GATED, ASYNC], ids=["gated", "async"])
def test_a_pair_is_equal_and_replays(shape, broker, tmp_path: Path):
    what = condition(shape, seed=2)
    sim, real = simulate(what, tmp_path), run_for_real(what, tmp_path, broker=broker)
    assert (sim.verdict, real.verdict) == ("COMPLETED", "COMPLETED")
    assert cycles(real) == cycles(sim)
    assert released(real) == released(sim)
    for run in (sim, real):
        nodes = replay(run.path)
        assert sorted(node.node for node in nodes) == ["aggregator", *what.nodes]
        assert [node for node in nodes if node.difference or node.skipped or not node.steps] == []


@pytest.mark.real
def test_joins_leaves_and_a_budget_are_equal_too(tmp_path: Path):
    population = {"joins": {"t1": 0.3, "t5": 0.55}, "leaves": {"t0": 0.9}}
    what = condition(ASYNC, population=population, stop={"runtime_s": 1.6}, goal=2, concurrency=4)
    sim, real = simulate(what, tmp_path), run_for_real(what, tmp_path)
    assert "budget" in real.reason
    assert cycles(real) == cycles(sim)
    assert released(real) == released(sim)
    assert {rank for _, rank, _, _ in released(sim)} >= {0, 1, 2, 3, 5}


@pytest.mark.real
def test_arrival_order_runs_and_calls_itself_fidelity(tmp_path: Path):
    what = condition(ASYNC, commit_order="arrival", pacing="relative")
    real = run_for_real(what, tmp_path)
    assert real.verdict == "COMPLETED"
    assert real.frame("run_meta")["tier"].unique().to_list() == ["fidelity"]
    assert [node for node in replay(real.path) if node.difference or node.skipped] == []
