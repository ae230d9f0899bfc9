"""A sample of `bench/kill_matrix.py`: whoever is killed when, nothing stays behind, and what is left can be read."""

import signal
from pathlib import Path

import pytest

from bench.kill_matrix import BLOWS, MOMENTS, Blow, Outcome, right, struck

SAMPLE = [
    (Blow("group", signal.SIGINT), "start"), (Blow("launcher", signal.SIGKILL), "middle"),
    (Blow("aggregator", signal.SIGKILL), "middle"), (Blow("launcher", signal.SIGTERM), "end"),
]  # fmt: skip


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.parametrize(("blow", "moment"), SAMPLE, ids=lambda value: str(value).replace(" ", "-"))
def test_nothing_stays_behind(blow: Blow, moment: str, tmp_path: Path) -> None:
    outcome = struck(blow, moment, tmp_path)
    assert outcome.faults == [], outcome
    assert not outcome.missed


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("blow", BLOWS, ids=str)
def test_what_is_wrong_is_a_fault(blow: Blow, moment: str) -> None:
    for verdict in right(blow, moment):
        assert Outcome(blow, moment, False, verdict, (), 0.0, 3, "").faults == []
        assert Outcome(blow, moment, False, verdict, ("7 python",), 0.0, 3, "torn").faults == ["left: 7 python", "telemetry: torn"]
    assert Outcome(blow, moment, False, "STARVED", (), 0.0, 3, "").faults == ["verdict STARVED"]
