"""Tph: which phases are compared, what is left out and named, and what is too little to matter."""

from collections.abc import Callable

import pytest

from flame.telemetry.rundir import RunPair
from parity.engine import Report
from tests.parity.early import taking
from tests.parity.edits import Edit, Line

Judge = Callable[..., Report]


def _only(*names: str) -> Callable[[Line], None]:
    return lambda record: record.update(phases={name: record["phases"][name] for name in names})


@pytest.mark.parametrize("phase", ["decode", "to_device", "compute", "to_host", "encode"])
def test_each_phase_is_compared_beyond_the_floor(phase: str, good: RunPair, judge: Judge) -> None:
    Edit(good.sim).each("trainer_round", taking(phase, 0.1))
    result = judge(good).of("Tph")
    assert (result.verdict, result.finding.effect) == ("FAIL", 1.0)
    assert result.reason.startswith(f"KS of {phase} 1.000 > 0.25")


def test_what_lies_within_five_milliseconds_is_equal(good: RunPair, judge: Judge) -> None:
    Edit(good.sim).each("trainer_round", taking("encode", 0.0069))
    assert judge(good).of("Tph").verdict == "PASS"
    Edit(good.sim).each("trainer_round", taking("encode", 0.0071))
    assert judge(good).of("Tph").verdict == "FAIL"


def test_what_lies_within_half_of_the_slower_median_is_equal(good: RunPair, judge: Judge) -> None:
    """Two workers on one core, or a slower machine: 1.9 times is the same program, 2.1 times isn't said to be."""
    for run in (good.sim, good.real):
        Edit(run).each("trainer_round", taking("compute", 0.1))
    Edit(good.real).each("trainer_round", taking("compute", 0.19))
    assert judge(good).of("Tph").verdict == "PASS"
    Edit(good.real).each("trainer_round", taking("compute", 0.21))
    assert judge(good).of("Tph").verdict == "FAIL"


def test_a_quarter_of_the_jobs_may_differ(good: RunPair, judge: Judge) -> None:
    Edit(good.sim).each("trainer_round", taking("encode", 0.1), lambda record: record["id"] % 4 == 0)
    result = judge(good).of("Tph")
    assert result.finding.effect == 0.25
    assert result.verdict != "FAIL"


def test_a_phase_that_one_run_lacks_is_left_out_and_named(good: RunPair, judge: Judge) -> None:
    Edit(good.sim).each("trainer_round", _only("compute"))
    result = judge(good).of("Tph")
    assert result.verdict == "PASS"
    assert result.reason.startswith("KS of compute 0.000 <= 0.25")
    assert "not measured: decode (sim), to_device (sim), to_host (sim), encode (sim)" in result.reason


def test_no_phase_in_common_is_a_skip_that_names_them(good: RunPair, judge: Judge) -> None:
    Edit(good.sim).each("trainer_round", _only("hold"))
    result = judge(good).of("Tph")
    assert result.verdict == "SKIP"
    assert "decode (sim), to_device (sim), compute (sim), to_host (sim), encode (sim)" in result.reason


def test_hold_is_shown_and_never_judged(good: RunPair, judge: Judge) -> None:
    Edit(good.sim).each("trainer_round", taking("hold", 99.0))
    result = judge(good).of("Tph")
    assert result.verdict == "PASS"
    assert "hold sim 99.000 s" in result.reason
