"""Baselines side by side: what may be compared, and which runs are taken."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from flame.analysis.comparison import comparison, differences, one_arm, same_condition
from flame.analysis.finished import by_fingerprint, ended, own
from flame.analysis.learned import Learned
from flame.analysis.summary import summary
from flame.config import Condition
from flame.config.errors import ConfigError
from flame.config.experiments import Experiments, load
from flame.config.layers import Patch
from flame.config.stops import StopRules
from flame.launch.run import run as run_flame
from flame.telemetry.rundir import Parent, RunDir
from tests.analysis.conftest import PLAIN


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two baselines of two seeds; one of them was run twice, and one run was cut short."""
    runs = tmp_path_factory.mktemp("compared")
    for baseline, seed in (("one", 1), ("one", 2), ("two", 1), ("two", 2), ("one", 1)):
        fields = PLAIN | {"baseline": baseline, "seed": seed, "stop": {"cycles": 12}} | ({"rate": "fedbuff"} if baseline == "two" else {})
        last = run_flame(Condition.model_validate(fields), runs=runs, run_set="small")
    cut = runs / f"2999{last.path.name[4:]}"
    cut.mkdir()
    (cut / "condition.json").write_bytes((last.path / "condition.json").read_bytes())
    (cut / "verdict.json").write_bytes(orjson.dumps({"verdict": "INTERRUPTED", "reason": "SIGINT"}))
    return runs


def test_the_newest_run_that_ended_by_itself_is_taken(folder: Path) -> None:
    all_ended = list(ended(folder))
    assert len(all_ended) == 5
    found = own(folder, "small").runs
    assert sorted(found) == [("one", 1), ("one", 2), ("two", 1), ("two", 2)]
    assert found["one", 1].label == all_ended[-1].label
    assert own(folder, "small", world="real").runs == own(folder, "other").runs == own(folder / "none", "small").runs == {}
    assert set(by_fingerprint(folder)) == {run.run_fp for run in all_ended}


def test_a_row_has_the_means_of_its_seeds(folder: Path) -> None:
    found = own(folder, "small").runs
    arms = {name: [Learned(found[name, seed]) for seed in (1, 2)] for name in ("one", "two")}
    target = min(max(each.evaluations["accuracy"]) for group in arms.values() for each in group)
    table = comparison(arms, [target, 1.01])
    assert table.select("baseline", "n").rows() == [("one", 2), ("two", 2)]
    for row, group in zip(table.iter_rows(named=True), arms.values(), strict=True):
        assert row["sustained"] == pytest.approx(sum(each.sustained() or 0 for each in group) / 2)
        assert row["worst"] == min(each.sustained() or 0 for each in group)
        assert row["passes"] == sum(each.spent().passes or 0 for each in group) / 2
        assert row[f"reached_{target:g}"] == 2
        assert row[f"passes_to_{target:g}"] == sum(each.cost_to(target).passes or 0 for each in group) / 2
        assert (row["reached_1.01"], row["passes_to_1.01"], row["time_s_to_1.01"]) == (0, None, None)


def test_mixed_conditions_are_refused_with_their_difference(simulate: Callable[..., RunDir]) -> None:
    one, other = simulate(), simulate(batch_size=4)
    assert list(differences(one.condition, other.condition)) == ["`batch_size` is `8` and `4`"]
    with pytest.raises(ConfigError) as refused:
        comparison({"one": [Learned(one)], "other": [Learned(other)]})
    assert f"`{one.label}` and `{other.label}` don't share their condition" in str(refused.value)
    assert "`batch_size` is `8` and `4`\nhint: compare runs of one run-set" in str(refused.value)
    same_condition([one, simulate(server_opt={"type": "sgd", "lr": 0.1})])


def test_a_seed_counts_once(simulate: Callable[..., RunDir]) -> None:
    with pytest.raises(ConfigError, match="`plain` has seed 1 twice"):
        one_arm("plain", [simulate(), simulate()])


@pytest.mark.parametrize(
    ("changes", "differs"),
    [
        ({"server_opt": {"type": "sgd", "lr": 0.7}}, "`server_opt.lr` is `0.3` and `0.7`"),
        ({"commit": [{"type": "variance", "threshold": 0.5}, {"type": "cap", "max": 2}]}, "`commit.cap.max` is `3` and `2`"),
        ({"baseline": "other", "rate": "fedbuff"}, '`baseline` is `"plain"` and `"other"`, and 1 more'),
        ({"limits": {"max_rejects": 99}}, "`limits.max_rejects`"),
    ],
)
def test_a_mean_is_of_seeds_alone(simulate: Callable[..., RunDir], changes: dict[str, Any], differs: str) -> None:
    one, other = simulate(), simulate(seed=2, **changes)
    with pytest.raises(ConfigError) as refused:
        comparison({"mine": [Learned(one), Learned(other)]})
    assert f"`mine`: `{one.label}` and `{other.label}` are no seeds of one condition: {differs}" in str(refused.value)
    one_arm("mine", [one, simulate(seed=2), simulate(seed=3, limits={"grace_s": 20})])


REGISTRY = """
baselines:
  one: {loop: async, select: random, commit: [{type: cap, max: 2}], perturb: single, server_opt: {type: sgd, lr: 0.01}}
  two: {loop: async, select: random, commit: [{type: cap, max: 2}], perturb: single, server_opt: {type: sgd, lr: 0.02}}
run_sets:
  tiny: {trainers: 4, goal: 2, concurrency: 3, delays: {values: [0.2]}, stop: {cycles: 4}, baselines: [one, two], seeds: [1]}
"""


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Experiments, Path]:
    """What a run-set ran, with a seed that isn't in its list; later a sweep's point, and a fork of one of its runs."""
    folder = tmp_path_factory.mktemp("mixed")
    (folder / "experiments.yaml").write_text(REGISTRY)
    registry = load(folder / "experiments.yaml")
    for each in registry.resolve("tiny", only=["one"], seeds=[1, 5]):
        made = run_flame(each.condition, runs=folder / "runs", run_set="tiny")
    for each in registry.resolve("tiny", seeds=[1], patches=[Patch(("server_opt", "lr"), 0.7, "lr")]):
        run_flame(each.condition, runs=folder / "runs", run_set="tiny")
    fork = made.path.name, RunDir(made.path).condition.model_copy(update={"stop": StopRules(cycles=5)})
    run_flame(fork[1], runs=folder / "runs", run_set="tiny", parent=Parent(fork[0], 2))
    return registry, folder / "runs"


def test_a_run_set_owns_what_it_would_run(mixed: tuple[Experiments, Path]) -> None:
    registry, runs = mixed
    its = own(runs, "tiny", registry)
    assert {key: run.condition.server_opt.lr for key, run in its.runs.items()} == {("one", 1): 0.01, ("one", 5): 0.01}  # type: ignore[union-attr]
    assert {name: run.condition.server_opt.lr for name, run in its.others.items()} == {"one": 0.7, "two": 0.7}  # type: ignore[union-attr]
    assert all(run.parent is None for run in its.runs.values())


def test_where_nobody_knows_the_run_set_its_newest_run_says_what_it_is(mixed: tuple[Experiments, Path]) -> None:
    its = own(mixed[1], "tiny")
    assert {key: run.condition.server_opt.lr for key, run in its.runs.items()} == {("one", 1): 0.7, ("two", 1): 0.7}  # type: ignore[union-attr]


def test_a_summary_is_json_and_says_what_ended(plain: Learned) -> None:
    told = orjson.loads(orjson.dumps(summary(plain, (0.1, 1.01))))
    assert told["verdict"]["verdict"] == "COMPLETED"
    assert told["accuracy"]["sustained"] == plain.sustained()
    assert told["spent"]["passes"] == plain.spent().passes
    assert [each["passes"] is None for each in told["to_target"]] == [False, True]
    assert sum(told["utilisation"].values()) == pytest.approx(1)
    assert sum(each["closes"] for each in told["commit_reasons"]) == 25
