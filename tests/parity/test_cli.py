"""The command: what is taken, what is asked, what is printed, how it exits."""

from collections.abc import Callable
from io import StringIO
from pathlib import Path
from subprocess import run as execute
from sys import executable

import orjson
import pytest

from flame.telemetry.rundir import RunPair
from parity.cli import main
from tests.parity.edits import Edit, cycle_is
from tests.parity.fixtures import condition, write_pair, write_run

Capture = pytest.CaptureFixture[str]


def _paths(pair: RunPair) -> list[str]:
    return [str(pair.real.path), str(pair.sim.path)]


class Terminal(StringIO):
    """Somebody who can be asked."""

    def isatty(self) -> bool:
        return True


def test_two_named_runs_are_compared_in_any_order_and_nobody_is_asked(good: RunPair, capsys: Capture) -> None:
    assert main(_paths(good)) == 0
    assert main(list(reversed(_paths(good)))) == 0
    out = capsys.readouterr().out
    assert " passed, " in out
    assert "failed" not in out


def test_the_newest_pairs_under_runs_are_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    write_pair(tmp_path / "runs", condition())
    write_pair(tmp_path / "runs", condition(seed=2))
    monkeypatch.chdir(tmp_path)
    assert main(["--yes"]) == 0
    out, err = capsys.readouterr()
    assert out.count("same in both") == 2
    assert "scoreboard" in out
    assert "took 20260101T101500Z_quick_fwdllm_n4_s1_real" in err


@pytest.mark.parametrize(("answer", "code"), [("\n", 0), ("y\n", 0), ("no\n", 2), ("", 2)])
def test_it_asks_whether_these_are_the_right_ones(
    answer: str, code: int, good: RunPair, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal(answer))
    assert main([str(good.real.path.parent)]) == code
    assert "compare these? [Y/n]" in capsys.readouterr().err


def test_where_nobody_can_be_asked_it_says_what_to_type(good: RunPair, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setattr("sys.stdin", StringIO("y\n"))
    assert main([str(good.real.path.parent)]) == 2
    assert "hint: --yes" in capsys.readouterr().err


def test_json_goes_to_stdout_alone(good: RunPair, capsys: Capture) -> None:
    assert main([*_paths(good), "--json"]) == 0
    (pair,) = orjson.loads(capsys.readouterr().out)["pairs"]
    assert pair["summary"]["fail"] == 0


def test_a_failure_exits_with_one(good: RunPair) -> None:
    Edit(good.sim).set("agg_round", cycle_is(9), model="x")
    assert main(_paths(good)) == 1
    assert main([*_paths(good), "--max-bin", "1"]) == 0


def test_options_reach_the_engine(good: RunPair) -> None:
    Edit(good.sim).verdict(wall_s=40.0)
    assert main(_paths(good)) == 1
    assert main([*_paths(good), "--lenient"]) == 0
    Edit(good.real).set("trainer_round", overran=True)
    assert main([*_paths(good), "--lenient", "--strict"]) == 1


def test_a_refused_pair_exits_with_two_and_force_lifts_it(tmp_path: Path, capsys: Capture) -> None:
    paths = [str(write_run(tmp_path, condition(seed=seed), kind).path) for seed, kind in ((1, "real"), (2, "sim"))]  # type: ignore[arg-type]
    assert main(paths) == 2
    assert "error: refused: fingerprints differ" in capsys.readouterr().err
    assert main([*paths, "--force"]) == 1


def test_nothing_to_compare_says_what_was_left_out_and_what_to_do(good: RunPair, capsys: Capture) -> None:
    (good.sim.path / "verdict.json").unlink()
    assert main([str(good.real.path.parent), "--yes"]) == 2
    error = capsys.readouterr().err
    assert "no complete pair" in error
    assert f"left out: `{good.sim.label}` has no verdict" in error
    assert "hint: flame run" in error


def test_one_run_alone_is_no_pair(good: RunPair, capsys: Capture) -> None:
    assert main([str(good.real.path)]) == 2
    assert "no complete pair" in capsys.readouterr().err


def test_a_folder_that_isnt_there_is_named(tmp_path: Path, capsys: Capture) -> None:
    assert main([str(tmp_path / "nowhere")]) == 2
    assert "there is no folder" in capsys.readouterr().err


@pytest.mark.parametrize("content", [b"", b"garbage\n", b'{"v":1,"run":"x"\n{}\n'])
def test_broken_telemetry_exits_with_two_and_no_traceback(content: bytes, good: RunPair, capsys: Capture) -> None:
    for file in (good.sim.path / "telemetry").glob("*.jsonl"):
        file.write_bytes(content)
    assert main(_paths(good)) == 2
    out, err = capsys.readouterr()
    assert "Traceback" not in out + err
    assert "is corrupt" in err if content else "no cycle was closed in both runs" in out


def _truncated(lines: list[bytes]) -> list[bytes]:
    """The process was killed while it wrote."""
    return [*lines[:-1], lines[-1][:40]]


def _cut_in_the_middle(lines: list[bytes]) -> list[bytes]:
    """A line lost its end, and the next one follows."""
    return [*lines[:9], lines[9][:40], *lines[10:]]


def _interleaved(lines: list[bytes]) -> list[bytes]:
    """Two processes wrote into one file at once."""
    return [*lines[:9], lines[9][:40] + lines[10], lines[9][40:], *lines[11:]]


def _spoil_lines(pair: RunPair, change: Callable[[list[bytes]], list[bytes]]) -> None:
    for file in (pair.sim.path / "telemetry").glob("*.jsonl"):
        file.write_bytes(b"".join(change(file.read_bytes().splitlines(keepends=True))))


@pytest.mark.parametrize("change", [_cut_in_the_middle, _interleaved])
@pytest.mark.parametrize("flags", [[], ["--validate"]])
def test_lines_that_are_none_are_named_by_file_and_number(
    flags: list[str], change: Callable[[list[bytes]], list[bytes]], good: RunPair, capsys: Capture
) -> None:
    _spoil_lines(good, change)
    assert main([*_paths(good), *flags]) == 2
    out, err = capsys.readouterr()
    assert "Traceback" not in out + err
    assert "aggregator-1.jsonl` line 10 is corrupt" in err or "aggregator-1.jsonl` line 11 is corrupt" in err


def test_a_torn_last_line_is_dropped_and_the_window_says_what_is_left(good: RunPair, capsys: Capture) -> None:
    _spoil_lines(good, lambda lines: _truncated(lines[: len(lines) * 2 // 3]))
    assert main(_paths(good)) == 1
    out, err = capsys.readouterr()
    assert "Traceback" not in out + err
    assert "sim: torn last line dropped in aggregator-1.jsonl" in out
    assert "window: bins 0-" in out


@pytest.mark.parametrize("content", [b"", b"\0" * 64, b"\xff\xfe\n"])
def test_a_run_whose_telemetry_says_nothing_is_an_error_and_no_verdict(content: bytes, good: RunPair, capsys: Capture) -> None:
    for file in (good.sim.path / "telemetry").glob("*.jsonl"):
        file.write_bytes(content)
    assert main(_paths(good)) == 2
    assert "Traceback" not in "".join(capsys.readouterr())


def test_a_run_that_is_still_going_is_compared_as_far_as_it_got(good: RunPair, capsys: Capture) -> None:
    (good.real.path / "verdict.json").unlink()
    for file in (good.real.path / "telemetry").glob("*.jsonl"):
        lines = file.read_bytes().splitlines(keepends=True)
        file.write_bytes(b"".join(lines[: len(lines) // 2]))
    code = main(_paths(good))
    out, err = capsys.readouterr()
    assert code in (0, 1)
    assert "Traceback" not in out + err
    assert "real has no verdict: it is still going, or crashed; the window is what it has written so far" in out
    assert main([str(good.real.path), "--validate"]) == 1
    assert "it has no verdict: still going, or crashed" in capsys.readouterr().out


def test_one_pair_that_cant_be_read_doesnt_hide_the_others(tmp_path: Path, capsys: Capture) -> None:
    write_pair(tmp_path, condition())
    broken = write_pair(tmp_path, condition(seed=2))
    (broken.sim.path / "telemetry" / "aggregator-1.jsonl").write_bytes(b"garbage\n")
    assert main([str(tmp_path), "--yes"]) == 2
    out, err = capsys.readouterr()
    assert " passed, " in out
    assert "line 1 is corrupt" in err


def test_a_crashed_run_is_left_out_and_said_so(good: RunPair, capsys: Capture) -> None:
    write_pair(good.real.path.parent, condition(), time="20260102T101500Z")
    crashed = write_run(good.real.path.parent, condition(), "real", time="20260103T101500Z")
    Edit(crashed).verdict(verdict="CRASH", reason="no broker")
    assert main([str(good.real.path.parent), "--yes"]) == 0
    error = capsys.readouterr().err
    assert f"left out `{crashed.label}` ended as CRASH: no broker" in error
    assert "took 20260102T101500Z" in error


def test_a_run_without_telemetry_is_named(good: RunPair, capsys: Capture) -> None:
    for file in (good.sim.path / "telemetry").glob("*.jsonl"):
        file.unlink()
    assert main(_paths(good)) == 2
    assert "no telemetry" in capsys.readouterr().err


def test_single_runs_are_validated(good: RunPair, capsys: Capture) -> None:
    assert main([str(good.real.path), "--validate"]) == 0
    out = capsys.readouterr().out
    assert "commit order  stamp" in out
    assert "0 failed, 22 held, 3 had nothing to look at" in out
    Edit(good.sim).each("accepted", lambda record: record.update(staleness=-1))
    assert main([str(good.real.path.parent), "--validate", "--yes"]) == 1
    assert "and 43 more" in capsys.readouterr().out


def test_all_ended_runs_of_a_folder_are_validated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    runs = [write_run(tmp_path / "runs", condition(seed=seed), "sim") for seed in (1, 2, 3)]
    newer = write_run(tmp_path / "runs", condition(), "sim", time="20260102T101500Z")
    going = write_run(tmp_path / "runs", condition(seed=4), "sim")
    (going.path / "verdict.json").unlink()
    monkeypatch.chdir(tmp_path)
    for paths in ([], ["runs"]):
        assert main([*paths, "--validate"]) == 0
        out, err = capsys.readouterr()
        assert all(run.label in out for run in (*runs, newer))
        assert f"left out `{going.label}` has no verdict" in err
    assert main([str(going.path), "runs", "--validate"]) == 1
    assert capsys.readouterr().out.count("had nothing to look at") == 5


def test_a_folder_in_which_no_run_has_ended_is_named(tmp_path: Path, capsys: Capture) -> None:
    assert main([str(tmp_path), "--validate"]) == 2
    assert f"no run has ended in `{tmp_path}`" in capsys.readouterr().err


def test_a_run_that_cant_be_read_doesnt_hide_the_others(good: RunPair, capsys: Capture) -> None:
    (good.real.path / "telemetry" / "aggregator-1.jsonl").write_bytes(b"garbage\n")
    assert main([*_paths(good), "--validate"]) == 2
    out, err = capsys.readouterr()
    assert good.sim.label in out
    assert "line 1 is corrupt" in err


def test_the_script_is_the_command(good: RunPair) -> None:
    script = Path(__file__).parents[2] / "expt_scripts" / "run_parity.py"
    done = execute([executable, str(script), "--help"], capture_output=True, text=True, check=True)
    assert "--max-bin" in done.stdout
