"""The scripts of expt_scripts on small runs: what they print, what they write, and what they refuse."""

import ast
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import orjson
import polars as pl
import pytest

from flame.analysis.learned import Learned
from flame.analysis.tables import markdown
from flame.config import Condition
from flame.config.errors import ConfigError
from flame.figures.page import one, shown, taken
from flame.learn.data.dealt import dealt
from flame.learn.timing import steps
from flame.telemetry.rundir import RunDir
from tests.figures.conftest import SHARED

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / "expt_scripts"


@pytest.fixture(scope="module")
def script(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a script of the folder."""
    away = tmp_path_factory.mktemp("elsewhere")

    def run(name: str, *rest: object) -> subprocess.CompletedProcess[str]:
        line = [sys.executable, str(SCRIPTS / f"{name}.py"), *map(str, rest)]
        return subprocess.run(
            line, cwd=away, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=200, check=False
        )

    return run


def of(home: Path, baseline: str) -> list[Path]:
    return sorted((home / "runs").glob(f"*_{baseline}_*"))


def test_a_run_gets_its_five_experiments_and_a_summary(
    script: Callable[..., subprocess.CompletedProcess[str]], home: Path, tmp_path: Path
) -> None:
    done = script("plot_run", of(home, "main_fwdllm")[0], "--out", tmp_path, "--target", "0.4")
    assert done.returncode == 0, done.stderr
    assert {path.name.split("-")[0] for path in tmp_path.glob("*.pdf")} == {"e1", "e2", "e3", "e4", "e5"}
    told = orjson.loads((tmp_path / "summary.json").read_bytes())
    assert told["accuracy"]["sustained"] == Learned(RunDir(of(home, "main_fwdllm")[0])).sustained()


def test_baselines_are_compared_and_mixed_conditions_refused(
    script: Callable[..., subprocess.CompletedProcess[str]], home: Path, tmp_path: Path
) -> None:
    done = script("compare_baselines", *of(home, "main_fwdllm"), *of(home, "main_fluxtune_stable"), "--to", "0.4", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    table = pl.read_csv(tmp_path / "comparison.csv")
    assert table.select("baseline", "n").rows() == [("fwdllm", 3), ("fluxtune_stable", 3)]
    assert len(list(tmp_path.glob("*.pdf"))) == 4
    mixed = script("compare_baselines", of(home, "main_fwdllm")[0], of(home, "tiny_one")[0], "--out", tmp_path / "mixed")
    assert mixed.returncode == 2
    assert "don't share their condition" in mixed.stderr
    assert not (tmp_path / "mixed").exists()


@pytest.mark.parametrize(
    ("name", "rest", "says"),
    [
        ("plot_step_timing", (), "| trainer | compute"),
        ("audit_weight_redundancy", (), "redundant_share"),
        ("characterize_variance_curve", ("--rule", "cap,max=1"), "| cap,max=1 |"),
        ("profile_jvp", ("--probes", "1", "2", "--bins", "1"), "one by one"),
    ],
)
def test_the_other_scripts_say_what_they_found(
    script: Callable[..., subprocess.CompletedProcess[str]], home: Path, tmp_path: Path, name: str, rest: tuple[str, ...], says: str
) -> None:
    where = () if name in ("audit_weight_redundancy", "profile_jvp") else ("--out", tmp_path)
    done = script(name, of(home, "main_fwdllm")[0], *rest, *where)
    assert done.returncode == 0, done.stderr
    assert says in done.stdout
    assert not where or list(tmp_path.glob("*.pdf"))


def test_what_is_no_run_is_one_message(script: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path) -> None:
    done = script("plot_step_timing", tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("config error: `")
    assert "Traceback" not in done.stderr
    refused = script("characterize_variance_curve", tmp_path, "--rule", "plato")
    assert (refused.returncode, "Traceback" in refused.stderr) == (2, False)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (("characterize_variance_curve", "--bins", "0"), "argument --bins: '0' is no whole number from 1 on"),
        (("profile_jvp", "--probes", "0"), "argument --probes: '0' is no whole number"),
        (("plot_run", "--target", "84"), "argument --target: '84' is no accuracy over 0 and up to 1"),
        (("compare_baselines", "--to", "nan"), "argument --to: 'nan' is no accuracy"),
        (("diagnose_partition_binning", "--alpha", "0"), "argument --alpha: '0' is no number over 0"),
        (("plot_run", "--out", __file__), "`test_scripts.py` is no folder"),
        (("plot_step_timing", "--out", __file__), "`test_scripts.py` is no folder"),
        (("compare_baselines", "--out", __file__), "`test_scripts.py` is no folder"),
    ],
)
def test_an_argument_that_can_not_be_meant_is_refused(
    script: Callable[..., subprocess.CompletedProcess[str]], home: Path, line: tuple[str, ...], says: str
) -> None:
    done = script(line[0], of(home, "main_fwdllm")[0], *line[1:])
    assert done.returncode == 2, done.stderr
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_every_option_of_every_script_has_a_help_text() -> None:
    asked = [
        (path.name, call)
        for path in sorted(SCRIPTS.glob("*.py"))
        for call in ast.walk(ast.parse(path.read_text()))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "add_argument"
    ]
    assert len(asked) > 20
    assert [(name, ast.unparse(call)) for name, call in asked if "help" not in [each.arg for each in call.keywords]] == []


def test_a_folder_of_runs_stands_for_its_finished_simulations(home: Path, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    shutil.copytree(home / "runs", runs, ignore=lambda _, names: [name for name in names if "_tiny_" in name])
    (first, *_) = sorted(runs.iterdir())
    again = runs / f"2999{first.name[4:]}"
    shutil.copytree(first, again)
    fork = runs / f"2999{sorted(runs.iterdir())[-2].name[4:]}"
    shutil.copytree(first, fork)
    stored = orjson.loads((fork / "condition.json").read_bytes())
    (fork / "condition.json").write_bytes(orjson.dumps(stored | {"run_fp": "f" * 12, "parent": {"run": first.name, "cycle": 2}}))
    found = taken([str(runs)])
    assert {name: sorted(each.run.condition.seed for each in each_of) for name, each_of in found.items()} == {
        "fwdllm": [1, 2, 3], "fluxtune_stable": [1, 2, 3],
    }  # fmt: skip
    assert again.name in [each.run.label for each in found[first.name.split("_")[2]]]
    assert [each.run.label for each in taken([f"mine={first}"])["mine"]] == [first.name]
    with pytest.raises(ConfigError, match="is a folder of 6 runs, and one is looked at"):
        one(str(runs))


def test_scripts_are_thin() -> None:
    lines = {path.name: sum(bool(line.strip()) for line in path.read_text().splitlines()) for path in SCRIPTS.glob("*.py")}
    assert {name: count for name, count in lines.items() if count > 40} == {}


def test_runs_are_taken_under_their_baseline_or_a_name(home: Path) -> None:
    first, two, _ = of(home, "main_fwdllm")
    found = taken([str(first), f"mine={two}"])
    assert {name: [each.run.label for each in runs] for name, runs in found.items()} == {"fwdllm": [first.name], "mine": [two.name]}
    assert [(arm.key, arm.name) for arm in shown(found)] == [("fwdllm", "FwdLLM"), ("mine", "mine")]
    assert len({arm.look.marker for arm in shown(found)}) == 2
    with pytest.raises(ConfigError, match="seed 1 twice"):
        shown(taken([str(first), str(first)]))


def test_tables_are_markdown_with_absent_values() -> None:
    told = markdown(pl.DataFrame({"name": ["a", "b"], "x": [0.123456, None], "n": [12345, 3], "big": [123456.7, 1.0]})).splitlines()
    assert [[cell.strip() for cell in line.strip("|").split("|")] for line in (told[0], *told[2:])] == [
        ["name", "x", "n", "big"], ["a", "0.1235", "12345", "123457"], ["b", "-", "3", "1"],
    ]  # fmt: skip


def test_a_step_is_timed_for_each_number_of_probes() -> None:
    rows = list(steps(Condition.model_validate(SHARED), [1, 3], 1))
    assert [(probes, way) for probes, way, _, _ in rows] == [(1, "one pass"), (3, "one pass"), (3, "one by one")]
    assert all(ms > 0 and each == pytest.approx(ms / probes) for probes, _, ms, each in rows)


def test_a_task_without_data_has_no_deal() -> None:
    with pytest.raises(ConfigError, match="no data set that is dealt"):
        dealt(Condition.model_validate(SHARED))


@pytest.mark.text
def test_the_deal_of_a_condition_is_the_one_that_would_be_made() -> None:
    fields = {"task": "text", "data": "r8", "partition": {"type": "niid_label", "alpha": 1.0}, "stop": {"cycles": 1}}
    condition = Condition.model_validate(fields)
    labels, own, bins = dealt(condition)
    again, made, lap = dealt(condition, 1.0)
    assert (own.keys(), bins) == (made.keys(), lap)
    assert all(np.array_equal(own[node], made[node]) for node in own)
    assert np.array_equal(labels, again)
    skewed = dealt(condition, 0.1)[1]
    assert not all(np.array_equal(own[node], skewed[node]) for node in own)
