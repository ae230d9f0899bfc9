"""Runs are listed and removed by what is asked for; one that goes on is never removed."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.config.errors import ConfigError
from flame.launch.folder import prune as pruning
from flame.launch.folder.listing import sized
from flame.launch.folder.prune import Wanted, age, chosen

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)


def make(
    runs: Path, days: float, verdict: str | None = "COMPLETED", baseline: str = "gated", fingerprint: str = "0" * 12, **launcher: int
) -> Path:
    """A run that was begun so many days ago."""
    begun = NOW - timedelta(days=days)
    run = runs / f"{begun:%Y%m%dT%H%M%S%f}Z_small_{baseline}_n4_s1_sim"
    run.mkdir(parents=True)
    (run / "condition.json").write_bytes(orjson.dumps({"run_fp": fingerprint}))
    (run / "launcher.json").write_bytes(orjson.dumps({"pid": 0} | launcher))
    if verdict is not None:
        (run / "verdict.json").write_bytes(orjson.dumps({"verdict": verdict, "reason": ""}))
    return run


def names(paths: list[Path]) -> set[str]:
    """Whole names."""
    return {path.name for path in paths}


def test_the_newest_of_each_kind_stay(tmp_path: Path) -> None:
    old, middle, new = (make(tmp_path, days) for days in (3, 2, 1))
    other = make(tmp_path, 9, baseline="plain", fingerprint="1" * 12)
    assert names(chosen(tmp_path, Wanted(keep=1), NOW)) == names([old, middle])
    assert names(chosen(tmp_path, Wanted(keep=0), NOW)) == names([old, middle, new, other])
    assert chosen(tmp_path, Wanted(keep=3), NOW) == []


def test_a_crash_takes_nobodys_place(tmp_path: Path) -> None:
    old, good = make(tmp_path, 4), make(tmp_path, 3)
    first, last = make(tmp_path, 2, None), make(tmp_path, 1, None)
    stalled = make(tmp_path, 5, "STALLED")
    assert names(chosen(tmp_path, Wanted(keep=1), NOW)) == names([old, first])
    assert {good, last, stalled}.isdisjoint(chosen(tmp_path, Wanted(keep=1, verdicts=("CRASH",)), NOW))


def test_variants_take_nobodys_place(tmp_path: Path) -> None:
    runs = [make(tmp_path, days, fingerprint=f"{days:012}") for days in (3, 2, 1)]
    (runs[1] / "condition.json").write_text("{")
    assert chosen(tmp_path, Wanted(keep=1), NOW) == []


def test_conditions_narrow_the_choice(tmp_path: Path) -> None:
    crashed, fresh, well = make(tmp_path, 8, None), make(tmp_path, 1, None), make(tmp_path, 9)
    assert names(chosen(tmp_path, Wanted(verdicts=("CRASH",)), NOW)) == names([crashed, fresh])
    assert names(chosen(tmp_path, Wanted(older=timedelta(days=7)), NOW)) == names([crashed, well])
    assert names(chosen(tmp_path, Wanted(older=timedelta(days=7), verdicts=("CRASH",)), NOW)) == names([crashed])
    assert names(chosen(tmp_path, Wanted(keep=1, older=timedelta(days=7)), NOW)) == names([crashed])


def test_what_goes_on_is_never_chosen(tmp_path: Path) -> None:
    make(tmp_path, 9, None, pid=os.getpid())
    make(tmp_path, 8, "COMPLETED", pid=os.getpid())
    (tmp_path / "no run of ours").mkdir()
    assert chosen(tmp_path, Wanted(keep=0), NOW) == []


@given(st.integers(0, 500), st.sampled_from("smhdw"))
def test_ages_are_read(number: int, unit: str) -> None:
    seconds = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
    assert age(f"{number}{unit}").total_seconds() == number * seconds[unit]


@pytest.mark.parametrize("text", ["99999999999w", f"{10**400}s", f"{'9' * 5000}d"])
def test_an_age_that_no_clock_holds_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="is older than any run"):
        age(text)


def test_digits_that_are_no_time_are_no_age(tmp_path: Path) -> None:
    make(tmp_path, 9).rename(tmp_path / "20269999T999999Z_small_gated_n4_s1_sim")
    assert chosen(tmp_path, Wanted(older=timedelta(days=1)), NOW) == []


@pytest.mark.parametrize("text", ["", "7", "d", "-1d", "1.5d", "1y"])
def test_what_is_no_age_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="is no age"):
        age(text)


def test_it_is_asked_and_nothing_goes_without_an_answer(flame: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = tmp_path / "runs"
    kept, gone = make(runs, 1), make(runs, 2)
    asked = flame("runs", "prune", "--keep", "1")
    assert asked.exit_code == 2
    assert gone.name in asked.stdout
    assert gone.exists()
    assert flame("runs", "prune", "--keep", "1", "--dry-run").exit_code == 0
    assert gone.exists()
    questions: list[str] = []
    monkeypatch.setattr(pruning, "agreed", lambda question, *, unasked: questions.append(question) or True)
    assert flame("runs", "prune", "--keep", "1").exit_code == 0
    assert questions[0].startswith("remove 1 runs, ")
    assert (kept.exists(), gone.exists()) == (True, False)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], ["which runs?", "--older-than 7d"]),
        (["--older-than", "soon"], ["`--older-than soon` is no age", "`7d`"]),
        (["--verdict", "CRASHED"], ["unknown verdict `CRASHED`", "did you mean `CRASH`?"]),
    ],
)
def test_a_choice_that_is_none_is_refused(flame: Any, tmp_path: Path, arguments: list[str], said: list[str]) -> None:
    run = make(tmp_path / "runs", 1)
    result = flame("runs", "prune", "--yes", *arguments)
    assert result.exit_code == 2
    assert all(part in result.stderr for part in said), result.stderr
    assert run.exists()


def test_runs_are_filtered_and_weighed(flame: Any, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    crashed, well = make(runs, 2, None), make(runs, 1, baseline="plain")
    (well / "telemetry").mkdir()
    (well / "telemetry" / "sim-1.jsonl").write_bytes(b"x" * (3 << 20))
    assert flame("runs", "--verdict", "crash").stdout.count("_small_") == 1
    assert crashed.name in flame("runs", "--verdict", "crash").stdout
    listed = flame("runs", "--only", "plain", "--size").stdout
    assert crashed.name not in listed
    assert "3.0 MiB" in listed
    assert "no such runs" in flame("runs", "--only", "nothing").stdout
    assert flame("runs", "--verdict", "fine").exit_code == 2


@pytest.mark.parametrize(
    ("size", "words"), [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (5 << 20, "5.0 MiB"), (1 << 45, "32768.0 GiB")]
)
def test_sizes_in_words(size: int, words: str) -> None:
    assert sized(size) == words


def test_the_shell_completes_run_sets_and_runs(flame: Any, tmp_path: Path) -> None:
    from flame.launch.cli.runs import complete_run_sets, complete_runs

    run = make(tmp_path / "runs", 1)
    flame("runs")
    assert complete_run_sets("sm") == ["small"]
    assert complete_run_sets("q") == []
    assert complete_runs(run.name[:6]) == [run.name]
    assert complete_runs("1999") == []
