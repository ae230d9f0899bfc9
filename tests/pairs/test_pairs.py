"""Pairs: for real over MQTT and simulated, equal in every cycle, every released row, every model bit."""

import shutil
from pathlib import Path

import polars as pl
import pytest

from flame.config.devices import profiles
from flame.runtime.books.replay import replay

from .support import ASYNC, GATED, SCALARS, WIDE, broken, condition, cycles, released, run_for_real, simulate

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
def test_policies_that_change_in_mid_run_change_at_the_same_cycle_in_both_worlds(tmp_path: Path):
    changes = [
        {"cycle": 6, "set": {"server_opt": {"type": "momentum", "lr": 0.05}, "select": "async_oort"}},
        {"cycle": 12, "set": {"commit": [{"type": "pool_size", "n": 6}], "rate": {"type": "grad_aware", "base": "fedbuff"}}},
    ]
    what = condition(ASYNC, changes=changes)
    sim, real = simulate(what, tmp_path), run_for_real(what, tmp_path)
    assert cycles(real) == cycles(sim)
    assert released(real) == released(sim)
    assert broken(real.path, sim.path) == []
    assert real.frame("agg_round")["reason"].unique(maintain_order=True).to_list() == ["goal", "keep", "pool_size"]


def sent(run):
    """Messages and bytes of what was released, by direction and kind of payload; resends are left out."""
    comm = run.frame("comm").filter(pl.col("payload") != "resend")
    counted = comm.join(run.frame("accepted").select("id").unique(), on="id", how="semi")
    grouped = counted.group_by("direction", "payload").agg(pl.len(), pl.sum("message_bytes"))
    return {(direction, kind): (count, size) for direction, kind, count, size in grouped.iter_rows()}


@pytest.mark.real
@pytest.mark.parametrize(
    ("shape", "changes", "kinds"),
    [
        (SCALARS, {}, {"full", "replay", "seeds"}),
        (GATED, {"payload": {"down": "replay", "up": "seeds"}, "toy": WIDE}, {"full", "none", "replay", "seeds"}),
        (ASYNC, {"payload": {"down": "delta", "wire_dtype": "bf16"}, "toy": WIDE}, {"full", "delta", "dense"}),
    ],
    ids=["scalars", "guided", "halves"],
)
def test_whatever_travels_instead_of_vectors_leaves_the_pair_equal_to_the_byte(shape, changes, kinds, tmp_path: Path):
    what = condition(shape, **changes)
    sim, real = simulate(what, tmp_path), run_for_real(what, tmp_path)
    assert (sim.verdict, real.verdict) == ("COMPLETED", "COMPLETED")
    assert cycles(real) == cycles(sim)
    assert released(real) == released(sim)
    assert sent(real) == sent(sim)
    assert {kind for _, kind in sent(sim)} >= kinds
    assert [node for run in (sim, real) for node in replay(run.path) if node.difference or node.skipped] == []


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
@pytest.mark.parametrize(
    ("shape", "awareness"), [(GATED, "oracular"), (ASYNC, "notified"), (ASYNC, "none")], ids=["gated", "async", "unaware"]
)
def test_trainers_that_come_and_go_leave_the_pair_equal(shape, awareness, tmp_path: Path):
    away = {"trace": "syn_50", "time_scale": 1000, "abandon_s": 400}
    what = condition(shape, goal=2, concurrency=4, availability=away, awareness=awareness, staleness="accept", stop={"cycles": 12})
    sim, real = simulate(what, tmp_path), run_for_real(what, tmp_path)
    assert (sim.verdict, real.verdict) == ("COMPLETED", "COMPLETED")
    assert len(sim.frame("withheld")) > 0
    assert len(sim.frame("abandoned")) > 0
    assert cycles(real) == cycles(sim)
    assert released(real) == released(sim)
    assert [node for run in (sim, real) for node in replay(run.path) if node.difference or node.skipped] == []


@pytest.mark.real
def test_legs_and_charged_evaluations_that_block_leave_the_pair_equal(tmp_path: Path):
    """504 bytes take 50 ms down and 100 ms up; what is dispatched while an evaluation is charged waits for its end."""
    wan, evaluation = {"seconds": 0.02, "down_mbit": 0.08064, "up_mbit": 0.04032}, {"rows": 32, "seconds": 0.1, "blocks": True}
    what = condition(ASYNC, wan=wan, eval=evaluation, commit=[{"type": "cap", "max": 2}])
    sim, real = simulate(what, tmp_path), run_for_real(what, tmp_path)
    assert (sim.verdict, real.verdict) == ("COMPLETED", "COMPLETED")
    assert cycles(real) == cycles(sim)
    assert released(real) == released(sim)
    devices = profiles(what)
    for run in (sim, real):
        assigns = run.frame("dispatch").select("trainer", "payload", "stamp_ns", "due_ns").rows()
        assert {(kind, due - stamp - devices[node].delay_ns) for node, kind, stamp, due in assigns} == {
            ("full", 190_000_000),
            ("none", 140_000_000),
        }
        commits, scored = run.frame("agg_round").filter("committed")["stamp_ns"].to_list(), run.frame("agg_eval")["stamp_ns"].to_list()
        assert scored == [at + 100_000_000 for at in commits]
        assert not any(at <= stamp < end for at, end in zip(commits, scored, strict=True) for _, _, stamp, _ in assigns)
    assert [node for run in (sim, real) for node in replay(run.path) if node.difference or node.skipped] == []


@pytest.mark.real
def test_arrival_order_runs_and_calls_itself_fidelity(tmp_path: Path):
    what = condition(ASYNC, commit_order="arrival", pacing="relative")
    real = run_for_real(what, tmp_path)
    assert real.verdict == "COMPLETED"
    assert real.frame("run_meta")["tier"].unique().to_list() == ["fidelity"]
    assert [node for node in replay(real.path) if node.difference or node.skipped] == []


@pytest.mark.real
@pytest.mark.parametrize(
    ("rules", "verdict", "closes"),
    [
        ({"target": {"accuracy": 0.42, "window": 3}}, "CONVERGED", 13),
        ({"stall": {"window_s": 1, "min_delta": 0.3, "on": "acc"}}, "STALLED", 9),
        ({"target": {"accuracy": 0.99}}, "DID_NOT_CONVERGE", 20),
    ],
    ids=["converged", "stalled", "missed"],
)
def test_what_the_evaluations_say_ends_both_runs_at_the_same_cycle(rules, verdict, closes, tmp_path: Path):
    what = condition(ASYNC, stop={"cycles": 20} | rules)
    sim, real = simulate(what, tmp_path), run_for_real(what, tmp_path)
    assert (sim.verdict, real.verdict) == (verdict, verdict)
    assert len(cycles(sim)) == closes
    assert cycles(real) == cycles(sim)
    assert broken(real.path, sim.path) == []
