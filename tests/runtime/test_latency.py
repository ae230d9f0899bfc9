"""Latencies in a simulation: no decision of the exact tier sees them, and arrival order is nothing else."""

import json
from pathlib import Path

import pytest

from flame.config import Condition, World
from flame.launch.run import Run, run
from tests.pairs.support import ASYNC, GATED, condition

LAW = {"latency": {"legs_s": [0.0, 0.01, 0.3], "hold_s": [0.0, 0.002, 0.2], "eval_s": [0.0, 0.05, 1.0]}}
ARRIVING = {"commit_order": "arrival", "pacing": "relative"}


@pytest.fixture
def law(tmp_path: Path) -> str:
    """A file of latencies that are longer than the delays are apart."""
    file = tmp_path / "law.json"
    file.write_text(json.dumps(LAW))
    return str(file)


def simulated(chosen: Condition, tmp_path: Path, **world: object) -> Run:
    return run(chosen, World.model_validate({"kind": "sim", "journal": False} | world), runs=tmp_path / "runs")


def models(done: Run) -> list[tuple[int, str, str]]:
    """Stamp, model and ledger after each close."""
    return done.frame("agg_round").select("stamp_ns", "model", "state").rows()  # type: ignore[no-any-return]


@pytest.mark.parametrize("shape", [GATED, ASYNC], ids=["gated", "async"])
def test_in_stamp_order_no_decision_sees_them(shape: dict[str, object], law: str, tmp_path: Path) -> None:
    prompt = simulated(condition(shape), tmp_path)
    late = simulated(condition(shape), tmp_path, latency=law, draw=5)
    assert models(late) == models(prompt)
    clocks = [done.frame("agg_round")["vclock_ns"].to_list() for done in (prompt, late)]
    assert all(later >= sooner for sooner, later in zip(*clocks, strict=True))
    assert sum(clocks[1]) > sum(clocks[0])


def test_in_arrival_order_a_draw_is_a_run(law: str, tmp_path: Path) -> None:
    chosen = condition(ASYNC, **ARRIVING)
    first, again, other = (simulated(chosen, tmp_path, latency=law, draw=draw) for draw in (1, 1, 2))
    assert models(first) == models(again)
    assert models(first) != models(other)


def test_lateness_is_told_where_it_is_drawn(law: str, tmp_path: Path) -> None:
    chosen = condition(ASYNC, **ARRIVING, stop={"cycles": 60})
    assert simulated(chosen, tmp_path).frame("lateness").height == 0
    late = simulated(chosen, tmp_path, latency=law).frame("lateness")["late_s"]
    assert late.len() >= 180
    assert late.min() >= 0 and late.max() <= 0.5  # type: ignore[operator]  # noqa: PT018
    assert late.mean() == pytest.approx(0.08 + 0.0515, rel=0.3)
