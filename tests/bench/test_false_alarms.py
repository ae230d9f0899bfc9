"""The study of false alarms in small: a pair of draws, the shifts of its power, and that the tables count."""

import json
from pathlib import Path

import numpy as np
import pytest

from bench.false_alarms import SHAPES, Judged, Recorded, alarms, condition, judged, lines, powers, recording, shifted, told
from parity.measures import statistics
from parity.measures.statistics import ks, mean

LAW = {"latency": {"legs_s": [0.0, 0.004, 0.02], "hold_s": [0.0, 0.001, 0.01]}}


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Judged:
    """Two draws of a law of some milliseconds."""
    file = tmp_path_factory.mktemp("law") / "law.json"
    file.write_text(json.dumps(LAW))
    return judged(file, "sync", 20, 0)


def test_a_pair_that_differs_by_chance_raises_no_alarm(pair: Judged) -> None:
    assert told(pair.report)["failed"] == {}
    assert pair.recorded
    one, other = (run.rounds["wall_s"].len() for run in pair.report.pair.runs)
    assert one == other == 20
    assert pair.report.pair.real.rounds["vclock_ns"].to_list() != pair.report.pair.sim.rounds["vclock_ns"].to_list()


@pytest.mark.parametrize("relative", [False, True])
def test_a_shift_of_a_mean_is_of_the_size_that_was_asked(relative: bool) -> None:
    series = np.random.default_rng(1).normal(5, 1, 60)
    with recording() as made:
        mean(series, series, 0.15, relative=relative)
    assert shifted(made[0][0], 2.0, 40).effect == pytest.approx(0.3)


def test_a_shift_of_a_distribution_moves_a_share_of_it() -> None:
    series = np.random.default_rng(2).normal(5, 1, 60)
    with recording() as made:
        ks(series, series, 0.2)
    measure = shifted(made[0][0], 1.5, 40)
    assert (measure.n, measure.effect) == (40, pytest.approx(0.3))


def test_what_was_recorded_is_what_was_measured() -> None:
    with recording() as made:
        done = mean([1.0, 2.0, 4.0], [1.0, 2.0, 3.0], 0.1, name="m")
    recorded: Recorded = made[0][0]
    assert made[0][1] == done
    assert statistics._measure(recorded.name, recorded.statistic, recorded.real, recorded.sim, tol=0.1, aligned=False) == done


def test_the_tables_count(tmp_path: Path) -> None:
    power = [{"rung": "K3", "measure": "KS", "n": 40, "factor": 2.0, "ended": ended} for ended in ("FAIL", "FAIL", "SKIP", "PASS")]
    plain = {"shape": "sync", "cycles": 20, "failed": {}, "by_statistic": {"PASS": 4, "SKIP": 2}}
    held = [plain | {"pair": 0, "power": power}, plain | {"pair": 1, "failed": {"K8": "far"}}, plain | {"pair": 2}]
    file = tmp_path / "pairs.jsonl"
    file.write_text("\n".join(map(json.dumps, held)))
    assert alarms(lines(file))[-1].startswith("| all | - | 3 | 1 | 33.3%, 0.8% to 90.6% | K8 1 | 4.0, 2.0 |")
    assert "50% / 25% (4)" in powers(held)[-1]


def test_the_condition_is_of_the_fidelity_tier() -> None:
    assert {condition(shape, 5, 1).tier for shape in SHAPES} == {"fidelity"}
