"""The example of policies from outside the tree, run where it lies."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest

from flame.telemetry.rundir import RunDir

EXAMPLE = Path(__file__).parents[2] / "examples" / "outside"


def run(folder: Path, *flags: str) -> list[RunDir]:
    """`flame run turns` in the example's folder; its runs."""
    command = [sys.executable, "-c", "from flame.launch.cli import main; main()", "run", "turns", "--runs", str(folder), "--yes", *flags]
    done = subprocess.run(command, cwd=EXAMPLE, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode in (0, 1), done.stderr
    return [RunDir(path) for path in sorted(folder.iterdir())]


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process is in the example's folder, too."""
    monkeypatch.chdir(EXAMPLE)
    monkeypatch.setattr(sys, "path", [*sys.path])


def test_the_example_lets_everybody_take_turns(tmp_path: Path, there: None) -> None:
    (done,) = run(tmp_path)
    assert done.verdict is not None
    assert done.verdict.verdict == "COMPLETED"
    taken = done.telemetry.frame("accepted").filter(pl.col("accepted"))
    assert taken["trainer"].value_counts()["count"].min() >= 3, "of 24 accepts by six; the slowest is not left out"
    ages = taken["staleness"].to_list()
    assert taken["rate"].to_list() == pytest.approx([0.5 ** (age / 3) for age in ages])
    assert len(set(ages)) > 1
    rate: Any = done.condition.rate
    assert re.fullmatch(r"[0-9a-f]{12}", rate.source)


@pytest.mark.real
def test_a_pair_of_the_example_agrees(tmp_path: Path, there: None) -> None:
    runs = run(tmp_path, "--mode", "both")
    assert [done.verdict.verdict for done in runs if done.verdict] == ["COMPLETED", "COMPLETED"]
    digests = [done.telemetry.frame("agg_round")["model"].to_list() for done in runs]
    assert digests[0] == digests[1]
    (pair,) = orjson.loads((runs[0].path / "parity.json").read_bytes())["pairs"]
    assert {rung["id"]: rung["verdict"] for rung in pair["rungs"]}["P0"] == "PASS"
