"""A sweep as a table: its axes are fields of conditions, its values those of its runs."""

from pathlib import Path

import pytest

from flame.analysis.learned import Learned
from flame.analysis.swept import cells, field, swept
from flame.config import Condition
from flame.config.errors import ConfigError
from flame.config.experiments import Experiments, load
from flame.launch.run import run as run_flame
from flame.telemetry.rundir import RunDir
from tests.analysis.conftest import PLAIN

REGISTRY = """
baselines:
  one: {loop: async, select: random, perturb: single, commit: [{type: cap, max: 2}], rate: constant, server_opt: {type: sgd, lr: 0.1}}
run_sets:
  small: {task: toy, trainers: 6, goal: 2, concurrency: 3, delays: {values: [0.2, 0.3]}, stop: {cycles: 8}, baselines: [one], seeds: [1, 2]}
sweeps:
  steps: {run_set: small, list: [{server_opt: {type: sgd, lr: 0.1}}, {server_opt: {type: momentum, lr: 0.1}, commit.cap.max: 1}]}
"""
AXES = ["server_opt.type", "commit.cap.max"]


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Experiments:
    file = tmp_path_factory.mktemp("sweep") / "experiments.yaml"
    file.write_text(REGISTRY)
    return load(file)


@pytest.fixture(scope="module")
def runs(registry: Experiments, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All simulations of the sweep but the last."""
    folder = tmp_path_factory.mktemp("swept")
    for _, each in registry.swept("steps")[:-1]:
        run_flame(each.condition, runs=folder, run_set="small")
    return folder


def test_each_place_has_its_runs_and_one_that_is_missing_has_no_mean(registry: Experiments, runs: Path) -> None:
    table = swept(registry, "steps", runs, AXES, "peak")
    assert table.select(*AXES, "seed").rows() == [("sgd", 2, 1), ("sgd", 2, 2), ("momentum", 1, 1), ("momentum", 1, 2)]
    there = {path.name: path for path in runs.iterdir()}
    for label, value in table.select("run", "value").iter_rows():
        assert (value is None) == (label is None)
    momentum, sgd = cells(table, AXES).rows(named=True)
    assert (momentum["n"], momentum["of"], momentum["mean"]) == (1, 2, None)
    assert (sgd["n"], sgd["of"], sgd["mean"]) == (2, 2, pytest.approx(table["value"].head(2).mean()))
    assert len(there) == 3


@pytest.mark.parametrize("measure", ["sustained", "peak", "loss_drop", "time_to", "passes_to", "bytes_to"])
def test_measures_are_those_of_the_run(registry: Experiments, runs: Path, measure: str) -> None:
    value = swept(registry, "steps", runs, AXES, measure, 0.2)["value"][0]
    found = next(iter(sorted(runs.iterdir())))
    learned = Learned(RunDir(found))
    at = learned.reached(0.2)
    expected = {
        "sustained": learned.sustained(), "peak": learned.peak(), "loss_drop": learned.loss_drop(),
        "time_to": at / 1e9 if at else None, "passes_to": learned.spent(at).passes, "bytes_to": learned.spent(at).both,
    }  # fmt: skip
    assert value == pytest.approx(expected[measure])


def test_what_can_not_be_meant_is_refused(registry: Experiments, runs: Path, tmp_path: Path) -> None:
    for arguments, message in (
        ((registry, "steps", tmp_path, AXES, "peak"), "none of the 4 simulations of sweep `steps` is in"),
        ((registry, "steps", runs, AXES, "passes_to"), "`passes_to` needs a target accuracy"),
        ((registry, "stepz", runs, AXES, "peak"), "unknown sweep `stepz`"),
        ((registry, "steps", runs, ["server_opt.tpye"], "peak"), "no field `server_opt.tpye`\nhint: did you mean `type`?"),
    ):
        with pytest.raises(ConfigError) as refused:
            swept(*arguments)  # type: ignore[arg-type]
        assert message in str(refused.value)


def test_fields_are_found_by_name_and_by_type() -> None:
    condition = Condition.model_validate(PLAIN)
    assert [field(condition, path) for path in ("goal", "perturb.probes", "commit.cap.max", "commit.variance.threshold")] == [2, 3, 3, 0.5]
    with pytest.raises(ConfigError, match="`goal` is the whole path"):
        field(condition, "goal.size")
