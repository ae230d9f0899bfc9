"""P0: a journal, fed to fresh machines, gives the same effects; where it doesn't, the step is named."""

from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import Any

import orjson
import pytest

from flame.config import Condition, World
from flame.core.machine import IllegalEvent
from flame.core.tasks import Gradient, GradientResult, Result, Task
from flame.learn.learner import build
from flame.runtime.books.journal import CorruptJournal
from flame.runtime.books.replay import NodeReplay, load_condition, replay, steps
from flame.runtime.compute.executors import Finished, Inline, Ticket
from tests.determinism.digests import condition, simulate
from tests.stage import numbers

SMALL: dict[str, Any] = {"stop": {"cycles": 4}}


def run(folder: Path, name: str = "async", **world: Any) -> Path:
    simulate(folder, condition(name, **SMALL), World.model_validate(world))
    return folder


def journal(folder: Path) -> Path:
    (path,) = (folder / "journal").glob("*.jsonl")
    return path


def rewrite(path: Path, change: Callable[[list[dict[str, Any]]], object]) -> None:
    """Change the steps of a journal, and chain them anew: what a machine that isn't a function would write."""
    header, *lines = path.read_bytes().splitlines()
    recorded = [orjson.loads(line)["step"] for line in lines]
    change(recorded)
    chain, out = b"", [header]
    for step in recorded:
        line = orjson.dumps(step)
        chain = blake2b(chain + line, digest_size=8).digest()
        out.append(b'{"step":' + line + b',"chain":"' + chain.hex().encode() + b'"}')
    path.write_bytes(b"\n".join(out) + b"\n")


def differences(folder: Path) -> dict[str, str]:
    return {node.node: node.difference for node in replay(folder) if node.difference}


@pytest.mark.parametrize("name", ["gated", "async"])
@pytest.mark.parametrize("level", ["full", "summary"])
def test_every_step_of_every_node_gives_the_same_effects(name: str, level: str, tmp_path: Path) -> None:
    folder = run(tmp_path, name, level=level)
    report = {node.node: node for node in replay(folder)}
    assert set(report) == {"aggregator", "t0", "t1", "t2", "t3", "t4", "t5"}
    assert all(node.difference is None and node.skipped is None for node in report.values())
    assert sum(node.steps for node in report.values()) == len(journal(folder).read_bytes().splitlines()) - 1
    assert report["aggregator"].steps > 10


def test_a_step_can_be_looked_at(tmp_path: Path) -> None:
    folder = run(tmp_path)
    every = list(steps(load_condition(folder), folder, journal(folder)))
    assert [step.seq for step in every] == list(range(len(every)))
    assert every[0].state == "aggregator (gathering, round 0, bin 0, iteration 0, version 0, 0 in flight)"
    last = [step for step in every if step.node == "aggregator"][-1]
    assert last.state.startswith("aggregator (stopped, ")
    assert b"COMPLETED" in last.effects


def find(recorded: list[dict[str, Any]], kind: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The last step with an effect of that kind, and the effect."""
    return next((step, effect) for step in reversed(recorded) for effect in step["effects"] if effect["kind"] == kind)


def test_a_changed_effect_is_named_with_its_step(tmp_path: Path) -> None:
    place = {}

    def later_due(recorded: list[dict[str, Any]]) -> None:
        step, effect = find(recorded, "send")
        place.update(step)
        effect["msg"]["stamp"] += 1

    folder = run(tmp_path)
    rewrite(journal(folder), later_due)
    ((node, difference),) = differences(folder).items()
    assert node == place["node"]
    assert difference.startswith(f"step {place['seq']} of {node} at {place['now'] / 1e9:.3f} s: effect ")
    assert "recorded {" in difference


def test_a_missing_effect_is_counted(tmp_path: Path) -> None:
    folder = run(tmp_path)
    rewrite(journal(folder), lambda recorded: find(recorded, "stop")[0]["effects"].pop())
    assert "effects, recorded" in differences(folder)["aggregator"]


def test_a_long_effect_is_cut(tmp_path: Path) -> None:
    def rename(recorded: list[dict[str, Any]]) -> None:
        next(effect["record"] for step in recorded for effect in step["effects"] if effect.get("record", {}).get("kind") == "agg_round")[
            "model"
        ] = "x"

    folder = run(tmp_path)
    rewrite(journal(folder), rename)
    difference = differences(folder)["aggregator"]
    assert difference.endswith(" ...")
    assert len(difference) < 800


def test_a_changed_release_is_named(tmp_path: Path) -> None:
    def swap(recorded: list[dict[str, Any]]) -> None:
        step = next(step for step in recorded if step["released"])
        step["released"][0][3] += 7

    folder = run(tmp_path)
    rewrite(journal(folder), swap)
    assert ": released [(" in differences(folder)["aggregator"]


def test_an_event_that_cannot_follow_is_a_difference(tmp_path: Path) -> None:
    def twice(recorded: list[dict[str, Any]]) -> None:
        at = next(number for number, step in enumerate(recorded) if step["event"]["kind"] == "started")
        recorded.insert(at, recorded[at])

    folder = run(tmp_path)
    rewrite(journal(folder), twice)
    assert "got Started" in differences(folder)["aggregator"]


def test_an_event_that_was_illegal_then_is_illegal_now(tmp_path: Path) -> None:
    """The step at which a run stopped is in its journal, without effects, and it is the last one."""
    of = condition("async", **SMALL)
    wrong = GradientResult(numbers(1.0), 1.0, 1.0, 8, 1, 1)
    with pytest.raises(IllegalEvent, match="got update"):
        simulate(tmp_path, of, executor=Wrong(of, wrong))
    assert differences(tmp_path) == {}
    rewrite(journal(tmp_path), lambda recorded: recorded.append(recorded[0]))
    assert "got update" in differences(tmp_path)["aggregator"]


def test_an_event_that_was_illegal_then_and_is_legal_now_is_a_difference(tmp_path: Path) -> None:
    folder = run(tmp_path)
    rewrite(journal(folder), lambda recorded: recorded[0].update(effects=None))
    assert "the event is legal now, and was illegal then" in differences(folder)["aggregator"]


def test_an_event_that_was_legal_and_did_nothing_and_is_illegal_now_is_a_difference(tmp_path: Path) -> None:
    def stranger(recorded: list[dict[str, Any]]) -> None:
        step = recorded[0]
        assert (step["event"]["kind"], step["effects"]) == ("peer_up", [])
        step["event"]["node"] = "t9"

    folder = run(tmp_path)
    rewrite(journal(folder), stranger)
    assert "`t9` isn't one of the 6 trainers" in differences(folder)["aggregator"]


def test_after_a_difference_the_rest_of_the_file_is_not_judged(tmp_path: Path) -> None:
    folder = run(tmp_path)
    rewrite(journal(folder), lambda recorded: recorded[0].update(released=[[0, 0, "", 0]]))
    report = {node.node: node for node in replay(folder)}
    assert report["aggregator"].steps == 0
    assert {node.steps for node in report.values()} == {0}


def test_a_node_that_is_not_in_the_condition(tmp_path: Path) -> None:
    folder = run(tmp_path)
    rewrite(journal(folder), lambda recorded: recorded[-1].update(node="t9"))
    with pytest.raises(CorruptJournal, match="steps of `t9`, which isn't in the condition"):
        replay(folder)


def test_without_blobs_nothing_is_replayed_and_that_is_said(tmp_path: Path) -> None:
    report = replay(run(tmp_path, blobs="none"))
    assert len(report) == 7
    assert {(node.steps, node.difference) for node in report} == {(0, None)}
    assert all("kept no blobs" in (node.skipped or "") for node in report)


def test_without_a_journal_nothing_is_replayed_and_that_is_said(tmp_path: Path) -> None:
    assert replay(run(tmp_path, journal=False)) == [NodeReplay("-", skipped="the run kept no journal")]


def test_a_missing_blob_is_an_error_and_no_pass(tmp_path: Path) -> None:
    folder = run(tmp_path)
    lost = sorted((folder / "blobs").rglob("*.npy"))[3]
    lost.unlink()
    with pytest.raises(FileNotFoundError, match=lost.stem):
        replay(folder)


def test_several_journals_of_a_node_add_up(tmp_path: Path) -> None:
    """A respawned worker has one per incarnation; the first difference stands."""
    folder = run(tmp_path)
    path = journal(folder)
    alone = {node.node: node.steps for node in replay(folder)}
    second = path.with_name("sim-2.jsonl")
    second.write_bytes(path.read_bytes())
    assert {node.node: node.steps for node in replay(folder)} == {node: 2 * count for node, count in alone.items()}
    rewrite(second, lambda recorded: recorded[-1]["effects"].clear())
    report = {node.node: node for node in replay(folder)}
    assert report["aggregator"].difference is not None


class NotFinite(Inline):
    """An executor whose third gradient has a loss, or a delta, that isn't finite."""

    def __init__(self, of: Condition, delta: float) -> None:
        super().__init__(build(of))
        self.delta, self.left = delta, 3

    def submit(self, task: Task) -> Ticket:
        self.left -= isinstance(task, Gradient)
        return (
            Done(GradientResult(numbers(self.delta, *[0.0] * 20), float("nan"), float("inf"), 8, 1, 1, float("-inf")))
            if not self.left
            else super().submit(task)
        )


class Wrong(Inline):
    """An executor that answers every gradient with one result."""

    def __init__(self, of: Condition, result: GradientResult) -> None:
        super().__init__(build(of))
        self.result = result

    def submit(self, task: Task) -> Ticket:
        return Done(self.result) if isinstance(task, Gradient) else super().submit(task)


class Done:
    """A ticket that is redeemed."""

    def __init__(self, result: Result) -> None:
        self.result = result

    def wait(self) -> Finished:
        return Finished(self.result, None, 0.0)


@pytest.mark.parametrize(("delta", "verdict"), [(0.0, "COMPLETED"), (float("nan"), "DIVERGED")])
def test_numbers_that_are_not_finite_are_replayed_too(delta: float, verdict: str, tmp_path: Path) -> None:
    """JSON has no NaN; the run in which one was seen is the one that somebody wants to replay."""
    of = condition("async", **SMALL)
    outcome = simulate(tmp_path, of, executor=NotFinite(of, delta))
    assert outcome.verdict == verdict
    assert differences(tmp_path) == {}
    assert sum(node.steps for node in replay(tmp_path)) > 10
