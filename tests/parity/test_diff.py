"""`flame diff` on journals that were really written: equal, logically equal, forged; its words and its exit codes."""

from pathlib import Path
from typing import Any

import orjson
import pytest

import flame
from flame.config import Condition, World
from flame.telemetry.rundir import RunDir
from parity.reports.diff import main
from tests.parity.edits import Edit, Line

SHAPE: dict[str, Any] = {
    "trainers": 6, "goal": 2, "concurrency": 4, "loop": "async", "select": "random", "commit": ["agg_goal"],
    "delays": {"values": [1.0, 2.0, 3.5]}, "stop": {"cycles": 6}, "toy": {"features": 6, "samples": 24},
}  # fmt: skip

pytestmark = pytest.mark.usefixtures("real_replay")


def simulated(runs: Path, **changes: Any) -> Path:
    """A run with a journal."""
    return flame.run(Condition.model_validate(SHAPE | changes), World(kind="sim"), runs=runs).path


def sends(steps: list[Line]) -> list[Line]:
    """Steps of the aggregator that dispatch."""
    return [step for step in steps if step["node"] == "aggregator" and any(each["kind"] == "send" for each in step["effects"])]


def test_two_runs_of_one_condition_are_equal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [str(simulated(tmp_path)) for _ in range(2)]
    assert main(runs) == 0
    assert "equal: " in capsys.readouterr().out
    assert main([*runs, "--json"]) == 0
    assert orjson.loads(capsys.readouterr().out) is None
    assert main([*runs, "--all"]) == 0
    assert "≠" not in capsys.readouterr().out


def test_another_speed_is_logically_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [str(simulated(tmp_path)), str(simulated(tmp_path, delays={"values": [2.0, 4.0, 7.0]}))]
    assert main([*runs, "--logical"]) == 0
    assert main(runs) == 1
    assert "STORY   LOGIC" in capsys.readouterr().out
    assert main([str(simulated(tmp_path)), str(simulated(tmp_path, delays={"values": [1.0, 0.5, 3.5]})), "--logical"]) == 1


def test_a_forged_effect_is_found_at_its_step(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its replay differs there, and so does the other run."""
    clean, forged = simulated(tmp_path), simulated(tmp_path)
    at: list[int] = []

    def forge(steps: list[Line]) -> None:
        step = sends(steps)[4]
        next(each for each in step["effects"] if each["kind"] == "send")["msg"]["draw"] += 1
        at.append(step["seq"])

    Edit(RunDir(forged)).steps(forge)
    assert main([str(forged), str(clean), "--json"]) == 1
    story = orjson.loads(capsys.readouterr().out)
    assert (story["cause"], story["node"], story["step"]) == ("LOGIC", "aggregator", at[0])
    assert "isn't a function of its inputs" in story["evidence"][0]
    assert story["command"] == f"flame replay {forged} --node aggregator --until {at[0]} --print"
    assert main([str(forged), str(clean)]) == 1
    assert "→" in capsys.readouterr().out


def test_without_blobs_an_effect_is_still_held_against_the_other_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    clean, forged = (flame.run(Condition.model_validate(SHAPE), World(kind="sim", blobs="none"), runs=tmp_path).path for _ in range(2))

    def forge(steps: list[Line]) -> None:
        next(each for each in sends(steps)[3]["effects"] if each["kind"] == "send")["msg"]["version"] = 77

    Edit(RunDir(forged)).steps(forge)
    assert main([str(forged), str(clean), "--json"]) == 1
    story = orjson.loads(capsys.readouterr().out)
    assert story["cause"] == "LOGIC"
    assert "`msg.version` first 77" in " ".join(story["evidence"])


def test_another_result_of_the_same_assign_is_another_content(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    clean, other = simulated(tmp_path), simulated(tmp_path)
    step: list[int] = []

    def change(steps: list[Line]) -> None:
        received = [each for each in steps if each["event"]["kind"] == "received" and each["event"]["msg"]["kind"] == "update"][5]
        received["event"]["msg"]["samples"] += 1
        step.append(received["seq"])

    Edit(RunDir(other)).steps(change)
    assert main([str(other), str(clean), "--json"]) == 1
    story = orjson.loads(capsys.readouterr().out)
    assert (story["cause"], story["row"] is not None) == ("LOGIC", True)
    assert story["step"] >= step[0]


def test_journals_that_cannot_be_read_are_said_and_telemetry_is_walked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Rows are known without steps, and a difference of the cycles is found."""
    one, two = simulated(tmp_path), simulated(tmp_path)
    for file in (two / "journal").glob("*.jsonl"):
        file.unlink()
    assert main([str(one), str(two)]) == 0
    assert "it kept no journal, or one without a header: rows are told by telemetry" in capsys.readouterr().out


def test_a_journal_that_was_changed_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = simulated(tmp_path), simulated(tmp_path)
    (file,) = (two / "journal").glob("*.jsonl")
    file.write_bytes(file.read_bytes().replace(b'"draw":0', b'"draw":1', 1))
    assert main([str(one), str(two)]) == 0
    assert "the hash chain breaks here" in capsys.readouterr().out


def test_what_is_no_run_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path), str(tmp_path)]) == 2
    assert "is no run directory" in capsys.readouterr().err
