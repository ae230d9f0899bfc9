"""The pre-flight's screen: three sections and the gate, read back from the launch objects, in any terminal."""

import re
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from flame.config.experiments import Experiments
from flame.config.fingerprint import condition_fp, run_fp
from flame.config.layers import Patch
from flame.config.world import World
from flame.launch.preflight import measure
from flame.launch.preflight.findings import Findings, examine
from flame.launch.preflight.issue import Issue, refused
from flame.launch.preflight.plan import Plan
from flame.launch.preflight.table import in_words, shared_rows, show, table_cells

SECTIONS = {
    "baselines": {
        "gated": {"commit": [{"type": "variance", "threshold": 0.3}, {"type": "cap", "max": 9}], "server_opt": {"type": "sgd", "lr": 0.2}},
        "plain": {"commit": ["agg_goal"], "loop": "async"},
    },
    "run_sets": {
        "small": {
            "task": "toy", "toy": {"samples": 32}, "trainers": 4, "goal": 2, "concurrency": 2, "delays": {"values": [1, 2]},
            "stop": {"cycles": 5}, "baselines": ["gated", "plain"], "seeds": [1, 2], "override": {"plain": {"concurrency": 3}},
        }
    },
}  # fmt: skip


def plan(*sets: str, worlds: tuple[World, ...] = (World(),), runs: Path = Path("runs"), **which: Any) -> Plan:
    """The small run-set with patches."""
    resolved = Experiments(Path("experiments.yaml"), SECTIONS).resolve("small", patches=[Patch.parse(text) for text in sets], **which)
    return Plan("small", resolved, worlds, runs)


def text(plan: Plan, found: Findings | None = None, *, width: int = 200, **options: Any) -> str:
    """The screen, as text."""
    out = StringIO()
    show(plan, found or examine(plan), Console(file=out, width=width, no_color=True), **options)
    return out.getvalue()


def test_the_sections_come_in_order_with_solid_headers() -> None:
    screen = text(plan())
    heads = [line.split(" ")[0] for line in screen.splitlines() if "━━━" in line]
    assert heads == ["shared", "baselines", "machine", "gate"]
    assert "nothing stands in the way" in screen


def test_what_is_shared_is_printed_as_resolved() -> None:
    chosen = plan("delays.factor=2")
    screen = text(chosen)
    rows = [" ".join(line.split()) for line in screen.splitlines()]
    assert "delays ! values 1 2, factor 2" in rows, "set by a flag"
    assert "trainers 4" in rows
    assert "seeds 1, 2" in rows
    assert condition_fp(chosen.conditions[0]) in screen
    assert all(run_fp(condition) in screen for condition in chosen.conditions)
    assert "tokens" not in screen, "the toy has none"


OF_TASKS = {"toy", "surrogate", "partition", "data", "model", "trainable", "tokens"}


@pytest.mark.parametrize(
    ("sets", "heard"),
    [
        (["task=toy"], {"toy", "partition"}),
        (["task=surrogate"], {"surrogate"}),
        (["task=text", "data=r8"], {"partition", "data", "model", "trainable", "tokens"}),
    ],
    ids=["toy", "surrogate", "text"],
)
def test_only_what_the_task_hears_is_shown(sets: list[str], heard: set[str]) -> None:
    assert {name for name, _ in shared_rows(plan(*sets))} & OF_TASKS == heard


def test_what_one_task_of_two_hears_has_a_column() -> None:
    override = {"plain": {"task": "surrogate", "surrogate": {"bins": 5}}}
    sections = SECTIONS | {"run_sets": {"small": SECTIONS["run_sets"]["small"] | {"override": override}}}
    _, header, _ = table_cells(Plan("small", Experiments(Path("x"), sections).resolve("small"), [World()], Path("runs")))
    assert {"task ≠", "toy ≠", "surrogate ≠"} <= {*header}


def test_knobs_that_differ_are_marked_and_so_are_overridden_ones() -> None:
    names, header, rows = table_cells(plan())
    assert names == ["gated", "plain"]
    assert {title for title in header if title.endswith("≠")} == {"concurrency ≠", "loop ≠", "commit ≠", "server_opt ≠"}
    assert [row[0] for row in rows] == ["2", "! 3"]
    assert rows[0][header.index("commit ≠")] == "variance, threshold 0.3, then cap, max 9"


def test_a_field_that_an_override_made_different_gets_a_column() -> None:
    sections = {**SECTIONS, "run_sets": {"small": {**SECTIONS["run_sets"]["small"], "override": {"plain": {"batch_size": 4}}}}}
    chosen = Plan("small", Experiments(Path("x"), sections).resolve("small"), [World()], Path("runs"))
    _, header, rows = table_cells(chosen)
    assert [row[header.index("batch_size ≠")] for row in rows] == ["8", "! 4"]
    assert "can't be compared" in text(chosen)


def test_one_table_has_baselines_as_rows_and_a_narrow_one_is_turned() -> None:
    chosen = plan(only=["plain"])
    wide, narrow = text(chosen, width=300), text(chosen, width=60)
    assert any(line.split()[:3] == ["baseline", "concurrency", "loop"] for line in wide.splitlines())
    assert any(line.split() == ["knob", "plain"] for line in narrow.splitlines())
    assert all(len(line) <= 60 for line in narrow.splitlines())


def test_worlds_are_described_by_what_they_use() -> None:
    screen = text(plan(worlds=(World(pool=1, wire="roundtrip"), World(kind="real", broker="embedded", workers=2, level="commits"))))
    assert "sim, pool 1, telemetry full, blobs all, wire roundtrip" in screen
    assert "real, broker embedded, 2 workers, telemetry commits, blobs all" in screen
    assert "of at most" in screen, "measured compute is held against D"


def test_what_helps_nothing_is_said() -> None:
    screen = text(plan(worlds=(World(pool=999, blobs="none"), World(kind="real", workers=9))))
    for said in ("5 of 9 workers", "pool processes beyond", "without blobs P0 can't be judged"):
        assert said in screen


def test_the_machine_has_a_row_for_its_gpus_and_one_for_memory_whatever_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def rows() -> list[str]:
        return [" ".join(line.split()) for line in text(plan()).splitlines()]

    monkeypatch.setattr(measure, "gpus_here", list)
    assert "GPUs no GPU" in rows()
    assert any(re.fullmatch(r"memory about \d+ MiB needed, \d+ MiB at most, \d+ MiB free", row) for row in rows())
    monkeypatch.setattr(measure, "gpus_here", lambda: ["cuda:0", "cuda:1"])
    assert "GPUs cuda:0, cuda:1" in rows()


def test_the_gain_of_each_step_is_said() -> None:
    """algorithms.md, section 5: heavy ball moves theta ten times as far in the limit as at first."""
    rows = [" ".join(line.split()) for line in text(plan('server_opt={"type": "momentum", "lr": 0.02}', only=["plain"])).splitlines()]
    assert "step plain: by momentum a steady G moves theta by 0.02 at first, 0.2 in the limit" in rows
    rows = [" ".join(line.split()) for line in text(plan('server_opt={"type": "nesterov"}', only=["plain"])).splitlines()]
    assert "step plain: by nesterov a steady G moves theta by 1.33 at first, 7 in the limit" in rows


def test_the_gate_shows_what_it_is_and_the_remedy() -> None:
    chosen = plan()
    found = examine(chosen)
    barred = Findings(found.measured, found.machine, [Issue("no data", "make some", True), Issue("no cap", "give one", False)])
    screen = text(chosen, barred)
    assert "can't work  no data; make some" in screen
    assert "unwise      no cap; give one; or run it all the same with `--force`" in screen
    assert "; forced" in text(chosen, barred, force=True)


@pytest.mark.parametrize(
    ("kinds", "force", "stopped"),
    [
        ([], False, False),
        ([True], False, True),
        ([True], True, True),
        ([False], False, True),
        ([False], True, False),
        ([True, False], True, True),
    ],
)
def test_force_lifts_only_what_is_unwise(kinds: list[bool], force: bool, stopped: bool) -> None:
    assert refused([Issue("x", "y", blocking) for blocking in kinds], force) == stopped


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "-"), (True, "yes"), (1.0, "1"), (0.25, "0.25"), ({}, "-"), ({"type": "cap", "max": 3}, "cap, max 3"),
        ([{"type": "a"}, {"type": "b"}], "a, then b"), ({"x": None, "y": 0, "z": False}, "y 0"), ("sync", "sync"),
    ],
)  # fmt: skip
def test_values_in_words(value: Any, words: str) -> None:
    assert in_words("field", value) == words
