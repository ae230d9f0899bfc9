"""What each flag does to the condition, and what follows a run."""

from pathlib import Path
from typing import Any

import pytest

from flame.config import Condition
from flame.config.experiments import Experiments
from flame.launch.preflight import flags
from flame.launch.results import follow
from flame.telemetry.rundir import RunName
from tests.launch.conftest import SECTIONS


def resolved(baseline: str = "gated", **given: Any) -> Condition:
    """The small run-set's condition under these flags."""
    registry = Experiments(Path("experiments.yaml"), SECTIONS)
    return registry.resolve("small", only=[baseline], patches=flags.patches(given, []))[0].condition


def commit(**given: Any) -> list[dict[str, Any]]:
    """Its commit rules."""
    return [rule.model_dump() for rule in resolved(**given).commit]


GATE, CAP = {"type": "variance", "threshold": 0.3}, {"type": "cap", "max": 9}
PLATEAU = {"type": "plateau", "patience": 3, "eps": 0.15}


@pytest.mark.parametrize(
    ("policy", "rules"), [("off", [GATE]), ("fixed_cap", [GATE, CAP]), ("plateau", [GATE, PLATEAU, CAP])]
)  # fmt: skip
def test_a_stopping_policy_keeps_the_numbers_of_the_baseline(policy: str, rules: list[dict[str, Any]]) -> None:
    assert commit(var_stopping_policy=policy) == rules


def test_numbers_come_after_the_policy_however_they_are_typed() -> None:
    given = {"max_iter_per_data_id": 4, "var_threshold": 0.5, "var_stopping_policy": "plateau"}
    assert commit(**given) == [GATE | {"threshold": 0.5}, PLATEAU, CAP | {"max": 4}]


def test_a_bin_of_data_is_a_commit() -> None:
    assert resolved(max_data_id=7).stop.commits == 7


def test_a_window_may_be_given_in_hours() -> None:
    hours, seconds = resolved(target_acc=0.5, stall_window_h=1.5), resolved(target_acc=0.5, stall_window_s=5400.0)
    assert hours.stop.stall is not None
    assert hours.stop.stall.window_s == 5400
    assert hours == seconds


def test_without_delays_nobody_is_slower_and_on_is_what_the_run_set_says() -> None:
    assert resolved(delays="on") == resolved()
    assert resolved(delays="off", delay_factor=4.0).delays.values == (1.0,)
    assert resolved(delays="off", delay_factor=4.0).delays.factor == 4


@pytest.mark.parametrize(
    ("text", "mode", "hooks"),
    [(None, "sim", {"parity"}), ("sanity", "sim", {"sanity"}), (" parity, sanity ,plot", "both", {*follow.HOOKS})],
)
def test_hooks_are_read(text: str | None, mode: str, hooks: set[str]) -> None:
    assert follow.wanted(text, mode) == hooks


def test_sanity_and_a_picture_follow(flame: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    result = flame("run", "small", "--only", "plain", "--after", "sanity,plot")
    assert result.exit_code == 0, result.output
    pictures = sorted((tmp_path / "runs").glob("*_curves/*.png"))
    assert [picture.stem for picture in pictures] == ["accuracy", "loss"]
    assert all(picture.read_bytes().startswith(b"\x89PNG") for picture in pictures)
    said = result.output + capfd.readouterr().out
    assert "plain s1 sim" in said
    (run,) = [path for path in (tmp_path / "runs").iterdir() if RunName.parse(path.name)]
    assert run.name in said


def test_a_hook_that_finds_something_is_a_bad_end(flame: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("parity.cli.main", lambda arguments: 1)
    assert flame("run", "small", "--only", "plain", "--after", "sanity").exit_code == 1
    assert flame("run", "small", "--only", "plain").exit_code == 0
