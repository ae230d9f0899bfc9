"""Run directories: names by exact tokens, pairs by stored conditions."""

from pathlib import Path

import pytest

from flame.telemetry.rundir import RunDir, RunDirError, RunName, find_pairs, survey
from tests.parity.edits import Edit
from tests.parity.fixtures import condition, write_pair, write_run


@pytest.mark.parametrize(
    ("name", "run_set", "baseline"),
    [
        ("20260101T101500Z_quick_fwdllm_n10_s1_real", "quick", "fwdllm"),
        ("20260101T101500123456Z_quick_fwdllm_n10_s1_real", "quick", "fwdllm"),
        ("20260101T101500Z_quick_fwdllm_plus_n10_s1_real", "quick", "fwdllm_plus"),
        ("20260101T101500Z_my-set_a_n3_s3_n10_s1_real", "my-set", "a_n3_s3"),
    ],
)
def test_a_name_is_its_tokens(name: str, run_set: str, baseline: str) -> None:
    parsed = RunName.parse(name)
    assert parsed is not None
    assert (parsed.run_set, parsed.baseline, parsed.trainers, parsed.seed, parsed.world) == (run_set, baseline, 10, 1, "real")
    assert str(parsed) == name


@pytest.mark.parametrize(
    "name",
    [
        "quick_fwdllm_n10_s1_real", "20260101T101500Z_quick_fwdllm_n10_s1", "20260101T101500Z_quick_fwdllm_n10_s1_real2",
        "20260101T101500Z_quick_n10_s1_real", "x20260101T101500Z_quick_fwdllm_n10_s1_real", "20260101T101500Z_quick_fwdllm_nten_s1_sim",
    ],
)  # fmt: skip
def test_anything_else_is_no_name(name: str) -> None:
    assert RunName.parse(name) is None


def test_a_run_is_read_back(tmp_path: Path) -> None:
    run = write_run(tmp_path, condition(), "sim")
    assert run.condition == condition()
    assert run.world.kind == "sim"
    assert run.verdict is not None
    assert (run.verdict.verdict, run.verdict.cycles) == ("COMPLETED", 12)
    assert run.ended
    assert run.has_journal
    assert run.run == run.label
    assert run.libraries["numpy"] == "2.4.6"
    assert run.disagreement() is None
    assert len(run.run_fp) == len(run.condition_fp) == 12
    assert run.telemetry.frame("agg_round").height == 12
    assert repr(run).startswith("RunDir(")


def test_a_run_without_a_verdict_has_not_ended(tmp_path: Path) -> None:
    run = write_run(tmp_path, condition(), "sim")
    (run.path / "verdict.json").unlink()
    assert not run.ended
    assert run.verdict is None


def test_a_directory_without_a_condition_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(RunDirError, match=r"is no run directory: it has no condition\.json"):
        RunDir(tmp_path)


@pytest.mark.parametrize(("content", "reason"), [(b"{", "is corrupt"), (b"[]", "is no JSON object")])
def test_a_condition_that_cant_be_read_is_named(tmp_path: Path, content: bytes, reason: str) -> None:
    (tmp_path / "condition.json").write_bytes(content)
    with pytest.raises(RunDirError, match=f"condition.json` {reason}"):
        RunDir(tmp_path)


def test_a_condition_of_another_version_names_the_field(tmp_path: Path) -> None:
    run = write_run(tmp_path, condition(), "sim")
    Edit(run).stored(lambda stored: stored["condition"].update(trainers="many"))
    with pytest.raises(RunDirError, match="`trainers`"):
        _ = RunDir(run.path).condition
    Edit(run).stored(lambda stored: stored.pop("run_fp"))
    with pytest.raises(RunDirError, match="has no `run_fp`"):
        _ = RunDir(run.path).run_fp


def test_a_verdict_that_is_incomplete_names_the_field(tmp_path: Path) -> None:
    run = write_run(tmp_path, condition(), "sim")
    Edit(run).verdict(wall_s=None)
    with pytest.raises(RunDirError, match="`wall_s`"):
        _ = run.verdict


def test_a_name_that_lies_is_found_out(tmp_path: Path) -> None:
    run = write_run(tmp_path, condition(), "sim")
    lying = run.path.rename(tmp_path / "20260101T101500Z_quick_fwdllm_n5_s1_sim")
    assert RunDir(lying).disagreement() == f"the name of `{lying.name}` says n `5` (its condition: `4`)"
    elsewhere = lying.rename(tmp_path / "mine")
    assert RunDir(elsewhere).disagreement() is None


def test_the_newest_complete_pair_is_taken(tmp_path: Path) -> None:
    for time in ("20260101T100000Z", "20260102T100000Z"):
        write_pair(tmp_path, condition(), time=time)
    write_run(tmp_path, condition(), "sim", time="20260103T100000Z")
    (pair,) = find_pairs(tmp_path)
    assert pair.real.label.startswith("20260102")
    assert pair.sim.label.startswith("20260103")


def test_a_pair_is_of_one_fingerprint(tmp_path: Path) -> None:
    write_pair(tmp_path, condition(), time="20260101T100000Z")
    write_run(tmp_path, condition(stop={"cycles": 5}), "sim", time="20260102T100000Z")
    (pair,) = find_pairs(tmp_path)
    assert pair.sim.label.startswith("20260101")


def test_runs_of_other_baselines_seeds_and_run_sets_are_pairs_of_their_own(tmp_path: Path) -> None:
    write_pair(tmp_path, condition())
    write_pair(tmp_path, condition(baseline="fwdllm_plus"))
    write_pair(tmp_path, condition(seed=2))
    write_pair(tmp_path, condition(), run_set="smoke")
    assert len(find_pairs(tmp_path)) == 4


def test_runs_that_have_not_ended_or_cant_be_read_are_left_out_and_named(tmp_path: Path) -> None:
    pair = write_pair(tmp_path, condition())
    (pair.real.path / "verdict.json").unlink()
    (tmp_path / "20260101T101500Z_quick_x_n1_s1_sim").mkdir()
    (tmp_path / "notes.txt").touch()
    runs, left_out = survey(tmp_path)
    assert [run.label for run in runs] == [pair.sim.label]
    assert len(left_out) == 2
    assert any("has no verdict" in reason for reason in left_out)
    assert find_pairs(tmp_path) == []
    assert find_pairs(tmp_path / "nowhere") == []
