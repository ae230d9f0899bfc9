"""`flame conditions`: the registry as conditions, and where two differ."""

from pathlib import Path

import orjson
import pytest
from jsonschema import Draft202012Validator
from typer.testing import CliRunner

import flame
from flame.config.condition import Condition
from flame.config.editor import schema
from flame.config.experiments import load
from flame.config.fingerprint import condition_fp, run_fp
from flame.config.layers import read_yaml
from flame.launch.cli import app
from flame.launch.cli.conditions import differences

SHIPPED = Path(__file__).parents[2] / "experiments.yaml"


def said(*args: str, code: int = 0) -> str:
    """What the command prints on stdout."""
    done = CliRunner().invoke(app, ["conditions", *args, "--experiments", str(SHIPPED)])
    assert done.exit_code == code, done.output
    return done.output


def test_every_baseline_of_every_run_set_is_listed_with_its_fingerprints() -> None:
    rows = [line.split() for line in said().splitlines()[1:]]
    registry = load(SHIPPED)
    assert [(row[0], row[1]) for row in rows] == [(name, each) for name, run_set in registry.run_sets.items() for each in run_set.baselines]
    first = registry.resolve("family", seeds=[1])[0].condition
    assert ["family", "fwdllm_plus", "1,2,3", condition_fp(first), run_fp(first)] in rows


def test_a_difference_names_the_fields_and_both_values() -> None:
    lines = [line.split() for line in said("pairs-toy/fluxtune", "pairs-toy/fluxtune_gate", code=1).splitlines()]
    assert ["estimator.type", "central_difference", "forward_ad"] in lines
    assert ["server_opt.rho", "-", "0.02"] in lines
    assert lines[-1][-3:] == ["shared", "by", "both"]
    assert not [line for line in lines if line[0] == "goal"]


def test_conditions_that_share_less_have_two_fingerprints() -> None:
    one, other = (load(SHIPPED).resolve(name, only=["fwdllm"])[0].condition for name in ("quick", "smoke"))
    assert f"condition_fp {condition_fp(one)} and {condition_fp(other)}" in said("quick", "smoke/fwdllm", code=1)


def test_a_run_is_compared_by_what_it_stored(tmp_path: Path) -> None:
    done = flame.run(Condition.model_validate({"stop": {"cycles": 2}}), runs=tmp_path)
    assert "are the same condition" in said(str(done.path), str(done.path))
    assert "stop.cycles" in said(str(done.path), "toy/fwdllm", code=1)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("quick",), "1 named, two are compared"),
        (("smoke", "quick"), "`smoke` holds 16 baselines"),
        (("quik", "toy"), "unknown run-set `quik`"),
    ],
)
def test_what_is_no_condition_is_refused(names: tuple[str, ...], message: str) -> None:
    done = CliRunner().invoke(app, ["conditions", *names, "--experiments", str(SHIPPED)])
    assert done.exit_code == 2
    assert message in done.output


@pytest.mark.parametrize(("text", "what"), [("{", "is corrupt"), ("[]", "is no JSON object"), ('{"condition": {"stop": 3}}', "`stop`")])
def test_a_run_whose_condition_is_damaged_is_refused(text: str, what: str, tmp_path: Path) -> None:
    (tmp_path / "condition.json").write_text(text)
    done = CliRunner().invoke(app, ["conditions", str(tmp_path), "quick", "--experiments", str(SHIPPED)])
    assert done.exit_code == 2
    said = " ".join(done.output.split())
    assert "condition.json` is" in said or "condition.json`: `" in said
    assert what in said
    assert "hint: give another run" in said


def test_differences_are_the_leaves_and_nothing_else() -> None:
    one = Condition.model_validate({"stop": {"cycles": 2}, "commit": [{"type": "variance", "threshold": 0.2}]})
    other = Condition.model_validate({"stop": {"cycles": 3}, "commit": [{"type": "variance", "threshold": 0.2}, {"type": "cap", "max": 9}]})
    assert list(differences(one, one)) == []
    found = {place: (here, there) for place, here, there in differences(one, other)}
    assert found == {("stop", "cycles"): (2, 3), ("commit", "1", "type"): (None, "cap"), ("commit", "1", "max"): (None, 9)}


class TestSchema:
    """The schema takes what is shipped, and no key that isn't one."""

    def faults(self, text: str) -> list[str]:
        return [error.message for error in Draft202012Validator(schema()).iter_errors(read_yaml(text, "it"))]

    def test_it_is_a_schema_and_takes_what_is_shipped(self) -> None:
        Draft202012Validator.check_schema(schema())
        assert self.faults(SHIPPED.read_text()) == []

    @pytest.mark.parametrize(
        "text",
        [
            "baseline: {}", "baselines: {mine: {trainers: 3}}", "baselines: {Mine: {loop: sync}}",
            "baselines: {mine: {loop: asink}}",
            "baselines: {mine: {select: ort}}", "baselines: {mine: {server_opt: {rate: 3}}}",
            "baselines: {mine: {commit: [{treshold: 3}]}}",
            "run_sets: {mine: {seeds: [1]}}", "run_sets: {mine: {baselines: [a], seeds: [one]}}", "defaults: {stop: {cycle: 3}}",
            "defaults: {seed: 3}", "run_sets: {mine: {baselines: [a], seeds: [1], override: {a: {goals: 3}}}}",
        ],
    )  # fmt: skip
    def test_it_refuses_what_can_not_be_meant(self, text: str) -> None:
        assert self.faults(text)

    @pytest.mark.parametrize(
        "text", ["baselines: {mine: {select: oort, server_opt: {rho: 0.1}, commit: [agg_goal]}}", "defaults:", "run_sets: {}"]
    )
    def test_a_part_is_enough(self, text: str) -> None:
        assert self.faults(text) == []

    def test_the_command_prints_it(self) -> None:
        assert orjson.loads(said("--schema")) == schema()
