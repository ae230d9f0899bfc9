"""What people and machines read. Text from telemetry is never markup, and colour adds nothing that isn't there."""

from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from flame.telemetry.rundir import RunPair
from parity.engine import Report
from parity.reports.document import document
from parity.reports.terminal import briefly, show
from parity.rungs import LADDER
from tests.parity.edits import Edit, cycle_is
from tests.parity.fixtures import asynchronous, condition, fidelity, write_pair, write_run

Judge = Callable[..., Report]


def text(*reports: Report, width: int = 120, **options: object) -> str:
    console = Console(file=StringIO(), width=width, highlight=False, **options)  # type: ignore[arg-type]
    show(console, reports)
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def test_a_good_pair_reads_at_a_glance(good: RunPair, judge: Judge) -> None:
    report = judge(good)
    lines = text(report).splitlines()
    assert lines[0].startswith("parity  fwdllm  seed 1  N 4  K 4  C 4  sync  exact tier")
    assert any(line.split()[:12] == ["1", "clock", "✓", "K1", "✓", "K7", "✓", "Sp", "✓", "P3", "·", "K3a"] for line in lines)
    assert any("same in both: fingerprint" in line for line in lines)
    assert any(line.startswith("PASS    Sp   sim_rate 50; real wall 30.0 s / sim wall 0.60 s = 50.0") for line in lines)
    passed, skipped, shown = (report.count(verdict) for verdict in ("PASS", "SKIP", "DIAG"))
    assert lines[-2].startswith(f"{passed} passed, {skipped} skipped, {shown} diag in")
    assert passed + skipped + shown == len(LADDER.rungs)
    assert lines[-2].endswith("window: bins 0-3, 12 cycles")


def test_a_failure_is_told_with_its_evidence_and_its_blame(good: RunPair, judge: Judge) -> None:
    Edit(good.sim).each("agg_round", lambda record: record.update(model="[bold]x[/bold]", variance=0.25), cycle_is(5))
    report = judge(good)
    told = text(report)
    assert "FAIL    L1  cohort_sequence  exact  ROOT-CAUSE" in told
    assert "sim [bold]x[/bold]" in told
    assert "FAIL    V2  var_trajectory  dist  DOWNSTREAM of L1" in told
    assert f"2 failed, {report.count('PASS')} passed" in told


def test_skips_and_blocks_say_why(good: RunPair, judge: Judge) -> None:
    Edit(good.sim).forget("agg_eval", "loss")
    Edit(good.sim).set("agg_round", committed=False)
    told = text(judge(good))
    assert "SKIP    C2 " not in told
    assert "BLOCKED C2   empty window: no bin was completed in both runs" in told


def test_differences_of_the_machines_are_marked(good: RunPair, judge: Judge) -> None:
    Edit(good.sim).stored(lambda stored: stored["libraries"].update(numpy="1.0"))
    assert "≠ numpy 1.0, python 3.11.7, torch 2.13.0" in text(judge(good))


def test_a_forced_pair_says_so_at_both_ends(tmp_path: Path, judge: Judge) -> None:
    pair = RunPair(write_run(tmp_path, condition(), "real"), write_run(tmp_path, condition(seed=2), "sim"))
    told = text(judge(pair, force=True))
    assert "! FORCED: fingerprints differ" in told
    assert told.rstrip().endswith("FORCED")
    assert "`seed` real 1 sim 2" in told.replace("\n", " ")


def test_a_failure_that_only_warns_says_so(good: RunPair, judge: Judge) -> None:
    Edit(good.sim).verdict(wall_s=40.0)
    told = text(judge(good, lenient=True))
    assert "ROOT-CAUSE  (only warns)" in told
    assert "(1 of the failures only warn)" in told


def test_a_diagnosis_of_the_fidelity_tier_shows_where_the_runs_parted(tmp_path: Path, judge: Judge) -> None:
    told = text(judge(write_pair(tmp_path, fidelity(), noise=(1, 2))))
    assert "fidelity tier" in told
    assert "DIAG    L1   12 of 12 cycles differ (100.0 %), first at cycle 0" in told
    assert "hint: flame replay" in told.replace("\n", " ")


def test_a_failure_by_statistic_says_so(tmp_path: Path, judge: Judge) -> None:
    pair = write_pair(tmp_path, fidelity(60), noise=(1, 1))
    Edit(pair.sim).each("selection", lambda record: record["chosen"].pop())
    assert "S34 selection_detail  dist, by its statistic  ROOT-CAUSE" in text(judge(pair))


def test_several_pairs_end_in_one_table(tmp_path: Path, judge: Judge) -> None:
    reports = [judge(write_pair(tmp_path, condition())), judge(write_pair(tmp_path, asynchronous(baseline="fedbuff")))]
    told = text(*reports)
    board = told[told.index("scoreboard") :].splitlines()
    assert next(line for line in board if line.startswith("L1 cohort_sequence")).split() == ["L1", "cohort_sequence", "✓", "✓"]
    assert any(line.split() == ["passed", *(str(report.count("PASS")) for report in reports)] for line in board)


def test_colour_adds_nothing(good: RunPair, judge: Judge) -> None:
    report = judge(good)
    coloured = text(report, force_terminal=True)
    assert "\x1b[" in coloured
    assert Console(file=StringIO(), no_color=True).no_color
    assert "\x1b[" not in text(report)


@pytest.mark.parametrize("width", [40, 80])
def test_a_narrow_terminal_loses_nothing(good: RunPair, judge: Judge, width: int) -> None:
    report = judge(good)
    told = text(report, width=width)
    assert max(map(len, told.splitlines())) <= width
    assert all(word in told for word in ("exact tier", "fwdllm", "sim_rate 50", f"{report.count('PASS')} passed", "✓ L1"))


def test_a_condition_is_told_in_a_line() -> None:
    line = briefly(condition())
    assert "commit variance(threshold 0.2)  commit cap(max 3)" in line
    assert "delays values (1.0, 2.0, 1.5, 2.5)" in line
    assert "stop cycles 12" in line


def test_the_document_has_every_rung(good: RunPair, judge: Judge) -> None:
    Edit(good.sim).set("agg_round", cycle_is(5), model="x")
    report = judge(good)
    (pair,) = document([report])["pairs"]
    assert (pair["baseline"], pair["seed"], pair["tier"], pair["window"]["cycles"]) == ("fwdllm", 1, "exact", 12)
    assert (pair["summary"]["fail"], pair["summary"]["blocked"], pair["summary"]["error"]) == (1, 0, 0)
    assert pair["summary"] == {name.lower(): report.count(name) for name in ("PASS", "FAIL", "SKIP", "BLOCKED", "DIAG", "ERROR")}
    assert [rung["id"] for rung in pair["rungs"]] == [rung.id for rung in LADDER.rungs]
    found = next(rung for rung in pair["rungs"] if rung["id"] == "L1")
    assert {key: found[key] for key in ("name", "stage", "tier", "domain", "verdict", "role", "tol", "n")} == {
        "name": "cohort_sequence", "stage": 6, "tier": "EXACT", "domain": "LOGICAL", "verdict": "FAIL",
        "role": "ROOT-CAUSE", "tol": 0.0, "n": 12,
    }  # fmt: skip
    assert pair["real"]["ended"]["verdict"] == "COMPLETED"
    (good.real.path / "verdict.json").unlink()
    assert document([judge(good)])["pairs"][0]["real"]["ended"] is None
