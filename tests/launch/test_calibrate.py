"""Calibration and replicates on small input: what goes in comes out, and what can't be measured is refused."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from flame.config import World
from flame.config.errors import ConfigError
from flame.config.latency import Law
from flame.config.registry import delays
from flame.launch.replicate import plan_of
from flame.launch.residuals import residuals
from flame.launch.results.calibrate import calibrated
from flame.telemetry.rundir import RunDir, RunPair
from parity.engine import check
from parity.ladder import Ladder
from parity.rungs import LADDER
from tests.parity.edits import Edit
from tests.parity.fixtures import DELAYS, condition, fidelity, write_run


@pytest.fixture
def real(tmp_path: Path) -> RunDir:
    """A real run in arrival order; its trainers take exactly their D, and arrivals are up to 0.1 s late."""
    return write_run(tmp_path, fidelity(20), "real", noise=3)


def test_the_law_is_what_the_run_took_beyond_its_model(real: RunDir) -> None:
    made = calibrated([real])
    law = Law.model_validate(made["latency"])
    assert {node: each["delay"] for node, each in made["clients"].items()} == pytest.approx(
        dict(zip(real.condition.nodes, DELAYS, strict=True))
    )
    assert law.hold_s[-1] == pytest.approx(0, abs=1e-6)
    assert 0.05 < law.legs_s[-1] < 0.11
    assert law.legs_s[100] == pytest.approx(0.05, abs=0.02)
    assert made["measured"]["updates"] == sum(each["n"] for each in made["clients"].values()) == 80


def test_a_trainer_that_takes_longer_is_measured_so(real: RunDir) -> None:
    def slow(record: dict[str, Any]) -> None:
        record["phases"]["hold"] += 0.04

    Edit(real).each("trainer_round", slow, lambda record: record["trainer"] == "t2")
    made = calibrated([RunDir(real.path)])
    assert made["clients"]["t2"]["delay"] == pytest.approx(DELAYS[2] + 0.04)
    assert made["clients"]["t2"]["modelled"] == pytest.approx(DELAYS[2])
    assert made["latency"]["hold_s"][-1] == pytest.approx(0.04)
    assert made["latency"]["hold_s"][100] == pytest.approx(0, abs=1e-6)


def test_its_file_is_a_registry_of_devices(real: RunDir, tmp_path: Path) -> None:
    file = tmp_path / "calibrated.json"
    file.write_bytes(orjson.dumps(calibrated([real])))
    assert delays(str(file), real.condition.nodes, reuse=False) == pytest.approx(list(DELAYS))


def test_what_says_nothing_of_a_machine_is_refused(real: RunDir, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nothing to measure"):
        calibrated([write_run(tmp_path, condition(), "sim")])
    with pytest.raises(ConfigError, match="of two conditions"):
        calibrated([real, write_run(tmp_path / "other", fidelity(21), "real", noise=3)])
    with pytest.raises(ConfigError, match="a law takes 30"):
        calibrated([write_run(tmp_path / "short", fidelity(3), "real", noise=3)])
    with pytest.raises(ConfigError, match="telemetry level `commits`"):
        calibrated([write_run(tmp_path / "brief", fidelity(20), "real", noise=3, level="commits")])


def test_replicates_are_of_the_same_condition_in_the_same_world(real: RunDir, tmp_path: Path) -> None:
    plan = plan_of(real, 3, tmp_path / "replicates")
    assert plan.worlds == [real.world] * 3
    assert plan.conditions == [real.condition]
    assert (plan.run_set, plan.runs) == ("quick", tmp_path / "replicates")


def test_a_simulation_is_replicated_by_other_draws_or_not_at_all(tmp_path: Path) -> None:
    sim = write_run(tmp_path, fidelity(3), "sim", noise=1)
    with pytest.raises(ConfigError, match="would be equal to it"):
        plan_of(sim, 2, tmp_path)
    Edit(sim).stored(lambda stored: stored.update(world=World(latency="law.json", draw=4).model_dump(mode="json")))
    assert [world.draw for world in plan_of(RunDir(sim.path), 2, tmp_path).worlds] == [5, 6]


def test_a_run_whose_files_have_changed_cant_be_replicated(real: RunDir, tmp_path: Path) -> None:
    Edit(real).stored(lambda stored: stored.update(run_fp="0" * 12))
    with pytest.raises(ConfigError, match="can't be made again"):
        plan_of(RunDir(real.path), 2, tmp_path)


def test_residuals_are_told_of_each_statistical_rung(real: RunDir, tmp_path: Path) -> None:
    sims = [write_run(tmp_path / str(noise), real.condition, "sim", noise=noise) for noise in (4, 3)]
    few = Ladder([replace(rung, upstream=()) for rung in LADDER.rungs if rung.id in ("K3b", "U3", "W1", "P3")])
    before, after = (check(RunPair(RunDir(real.path), sim), few) for sim in sims)
    rows = {row["id"]: row for row in residuals(before, after)}
    assert rows.keys() == {"K3b", "U3", "W1"}
    assert rows["K3b"]["before"] == before.of("K3b").finding.effect > rows["K3b"]["after"]
    assert rows["K3b"]["verdicts"] == (before.of("K3b").verdict, after.of("K3b").verdict)
