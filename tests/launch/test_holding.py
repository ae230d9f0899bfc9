"""What a run holds: how it grows with N, K, C and p, and that it isn't far from what is taken."""

import gc
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from flame.config import Condition
from flame.config.devices import profiles
from flame.core.events import PeerUp, Started
from flame.launch.preflight import gate, measure
from flame.launch.preflight.holding import held, most_uploads
from flame.launch.preflight.measure import Machine
from flame.learn.learner import build
from flame.roles.aggregator import Aggregator
from flame.roles.trainer import Trainer

BARE: dict[str, Any] = {
    "task": "surrogate", "trainers": 100, "goal": 10, "concurrency": 20, "loop": "async", "commit": ["agg_goal"], "stop": {"cycles": 5},
}  # fmt: skip
P = 1_000


def condition(**changes: Any) -> Condition:
    return Condition.model_validate(BARE | changes)


def grown(before: dict[str, Any], after: dict[str, Any], parameters: int = P) -> int:
    """How many vectors of theta more the second one holds at most."""
    vector = 4 * parameters
    one, other = (held(condition(**changes), parameters, vector).most for changes in (before, after))
    return (other - one) // vector


def test_rows_grow_with_the_trainers_and_their_traces() -> None:
    few, many = (held(condition(trainers=n), 0, 0).most for n in (1_000, 100_000))
    assert 99_000 * 500 < many - few < 99_000 * 2_000
    away = held(condition(trainers=1_000, availability={"trace": "syn_50"}), 0, 0).most
    assert away - few > 1_000 * 10_000, "five hundred instants each"


def test_vectors_grow_with_what_is_kept() -> None:
    gated = [{"type": "variance", "threshold": 0.1}, {"type": "cap", "max": 6}]
    assert grown({}, {"commit": gated}) == 5 * 10, "six cycles of K uploads instead of one"
    assert grown({}, {"concurrency": 21}) == 5
    assert grown({}, {"trainers": 101}) == 1
    assert grown({}, {"payload": {"down": "delta"}}) == 31, "versions that a difference may lead from"
    assert grown({}, {"perturb": "guided"}) == 101, "u beside theta, at the aggregator and at each trainer"


@pytest.mark.parametrize(
    ("commit", "uploads"),
    [
        (["agg_goal"], 10),
        ([{"type": "pool_size", "n": 25}], 34),
        ([{"type": "pool_size", "n": 25}, {"type": "cap", "max": 2}], 20),
        ([{"type": "variance", "threshold": 1}], 600),
    ],
)
def test_the_pool_is_as_large_as_the_first_rule_that_must_end_it(commit: list[Any], uploads: int) -> None:
    assert most_uploads(condition(commit=commit)) == uploads


@pytest.mark.parametrize("availability", [{}, {"trace": "syn_20"}, {"trace": "phone_2st"}])
def test_it_is_near_what_the_machines_take(availability: dict[str, Any]) -> None:
    given = condition(trainers=400, availability=availability, awareness="notified")
    facts = build(given).facts
    assert len(given.nodes) == 400, "made once, and kept by the condition"
    gc.collect()
    tracemalloc.start()
    aggregator = Aggregator(given, facts.init, facts.bins, "summary", facts.layout)
    trainers = [Trainer(given, profile, "summary", facts.layout) for profile in profiles(given).values()]
    for trainer in trainers:
        aggregator.step(0, PeerUp(trainer.profile.node, trainer.profile))
    aggregator.step(0, Started())
    gc.collect()
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    said = held(given, facts.layout.size, facts.init.nbytes)
    assert 0.5 * taken < said.least <= said.most < 2 * taken


def test_what_may_be_too_much_is_unwise_and_what_is_too_much_can_not_work() -> None:
    weights = [[issue.blocking for issue in gate._memory(Machine(1, 100, *needed))] for needed in ((90, 100), (90, 101), (101, 101))]
    assert weights == [[], [False], [True]]


def test_gpus_are_told_without_loading_what_would_use_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "DRIVER", tmp_path)
    monkeypatch.delitem(measure.sys.modules, "torch", raising=False)
    assert measure.gpus_here() == []
    for name in ("0000:01:00.0", "0000:02:00.0"):
        (tmp_path / name).mkdir()
    assert measure.gpus_here() == ["cuda:0", "cuda:1"]
