"""What can't be run is refused before anything starts: field, value, and what to type instead."""

import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from flame.launch import gate, measure, preflight
from flame.launch.clean import Trace
from flame.learn.data.fednlp import Corpus, write_corpus

Refused = Callable[[Sequence[str]], str]
REAL = ["--mode", "real", "--yes"]

FLAGS: list[tuple[list[str], list[str]]] = [
    (["smal"], ["unknown run-set `smal`", "did you mean `small`?"]),
    (["--run-set", "nothing"], ["unknown run-set `nothing`", "Known run-sets: small"]),
    (["small", "--run-set", "large"], ["two run-sets are given", "give one"]),
    (["small", "--only", "gatd"], ["unknown baseline `gatd`", "did you mean `gated`?"]),
    (["small", "--only", "gated,"], ["`--only gated,` holds an empty name"]),
    (["small", "--seeds", "1;2"], ["`1;2` is no whole number", "--seeds 1,2,3"]),
    (["small", "--seeds", "3,3"], ["names `3` twice"]),
    (["small", "--set", "stop.cylces=3"], ["unknown key `stop.cylces`", "did you mean `cycles`?"]),
    (["small", "--set", "stop.cycles"], ["not of the form `a.b.c=value`"]),
    (["small", "--set", "trainers='4'"], ["`trainers` is `\"4\"`", "without quotes"]),
    (["small", "--set", "select.type=ort"], ["unknown select policy `ort`", "all, async_oort, fedbuff, oort, random"]),
    (["small", "--set", "commit_order=arrival"], ["doesn't go with `pacing: absolute`", "`arrival` with `relative`"]),
    (["small", "--set", "delays.values=[0.0]"], ["`delays.values.0` is `0.0`", "over 0"]),
    (["small", "--delay-factor", "0"], ["`delays.factor` is `0.0` (from `--delay-factor 0.0`)", "over 0"]),
    (["small", "--trainers", "1"], ["`goal` K = 2 is over `trainers` N = 1", "`--agg-goal 1`"]),
    (["small", "--agg-goal", "4"], ["`goal` K = 4 is over `concurrency` C = 3", "`--concurrency 4`"]),
    (["small", "--concurrency", "1"], ["`goal` K = 2 is over `concurrency` C = 1"]),
    (["small", "--set", "sizes.type=vartracking"], ["unknown sizes policy `vartracking`", "static, var_tracking"]),
    (["small", "--set", "sizes.type=var_tracking"], ["`goal` K = 2 is outside `sizes.goal_min` = 5", "give a `goal` within"]),
    (["small", "--max-runtime", "-1"], ["`stop.runtime_s` is `-1.0` (from `--max-runtime -1.0`)"]),
    (["small", "--var-threshold", "0", "--only", "gated"], ["`commit.0.threshold` is `0.0` (from `--var-threshold 0.0`)", "over 0"]),
    (["small", "--var-threshold", "0.1", "--only", "plain"], ["`commit` has no entry `variance`", "it has 0 (agg_goal)"]),
    (["small", "--max-iter-per-data-id", "0", "--only", "gated"], ["`commit.1.max` is `0`"]),
    (["small", "--experiments", "none.yaml"], ["there is no `none.yaml`", "--experiments FILE"]),
    (["small", "--mode", "twice"], ["'twice' is not one of", "sim", "real", "both"]),
    (["small", "--trainers", "many"], ["--trainers", "valid integer"]),
    (["small", "--wokers", "2"], ["No such option: --wokers", "--workers"]),
    (["small", "--workers", "0", *REAL], ["`workers` is `0` (`--workers`)", "over 0"]),
    (["small", "--pool", "-1"], ["`pool` is `-1` (`--pool`)", "at least 0"]),
    (["small", "--broker", "mosquito", *REAL], ["there is no broker `mosquito`", "did you mean `mosquitto`?"]),
    (["small", "--broker", "host:99999", *REAL], ["there is no broker `host:99999`", "HOST:PORT"]),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "said"), FLAGS, ids=[" ".join(arguments) for arguments, _ in FLAGS])
def test_a_wrong_flag_is_refused(refused: Refused, arguments: list[str], said: list[str]) -> None:
    message = refused(["run", *arguments])
    assert all(part in message for part in said), message


FILES: list[tuple[str, Any, list[str]]] = [
    ("baselines.gated.staleness_polcy", "exact", ["unknown key `staleness_polcy` in baselines.gated", "did you mean `staleness`?"]),
    ("baselines.gated.loop", "ring", ["`loop` is `\"ring\"` in baselines.gated", "`sync` or `async`"]),
    ("baselines.gated.rate", "felixx", ["unknown rate policy `felixx` in baselines.gated"]),
    ("run_sets.small.tariners", 4, ["unknown key `tariners` in run_sets.small", "did you mean `trainers`?"]),
    ("run_sets.small.trainers", "4", ["`trainers` is `\"4\"` in run_sets.small"]),
    ("run_sets.small.stop", {"cycles": "5"}, ["`stop.cycles` is `\"5\"` in run_sets.small"]),
    ("run_sets.small.stop", {}, ["nothing ends the run"]),
    ("run_sets.small.baselines", ["gated", "palin"], ["unknown baseline `palin` in run_sets.small", "did you mean `plain`?"]),
    ("run_sets.small.seeds", [1, 1], ["names `1` twice"]),
    ("run_sets.small.override", {"gated": {"goal": "2"}}, ["`goal` is `\"2\"` in run_sets.small.override.gated"]),
]  # fmt: skip


@pytest.mark.parametrize(("place", "value", "said"), FILES, ids=[f"{place}={value}" for place, value, _ in FILES])
def test_a_wrong_file_is_refused(refused: Refused, sections: dict[str, Any], place: str, value: Any, said: list[str]) -> None:
    *parents, key = place.split(".")
    block = sections
    for parent in parents:
        block = block[parent]
    block[key] = value
    message = refused(["run", "small"])
    assert all(part in message for part in said), message


# ---- data and model


@pytest.fixture
def news(sections: dict[str, Any], tmp_path: Path) -> dict[str, Any]:
    """The run-set on a tiny prepared data set without partitions; its shared fields, to be changed."""
    index = np.arange(40)
    folder = tmp_path / "data" / "news"
    folder.mkdir(parents=True)
    corpus = Corpus([f"text {i}" for i in index], index % 2, ("bad", "good"), index, index[:32], index[32:])
    write_corpus(folder / "news_data.h5", corpus)
    small: dict[str, Any] = sections["run_sets"]["small"]
    small |= {"task": "text", "data": "news", "partition": {"type": "niid_label", "alpha": 1.0}, "eval": {"rows": 8}}
    return small


def test_missing_data_is_refused(refused: Refused, news: dict[str, Any]) -> None:
    news["data"] = "r8"
    message = refused(["run", "small"])
    assert "can't work gated: data set `r8` isn't in" in message
    assert "run `flame data prepare r8`" in message


def test_a_missing_partition_is_refused(refused: Refused, news: dict[str, Any]) -> None:
    message = refused(["run", "small", "--force"])
    assert "partition `niid_label_clients=4_alpha=1.0` of `news` is missing; present: none" in message
    assert "flame data partition news --type niid_label --clients 4 --alpha 1.0" in message


def test_the_command_that_the_refusal_names_makes_the_partition(flame: Any, refused: Refused, news: dict[str, Any]) -> None:
    assert flame("data", "partition", "news", "--type", "niid_label", "--clients", "4", "--alpha", "1.0").exit_code == 0
    news["model"] = "/no/such/model"
    message = refused(["run", "small"])
    assert "`model` is `/no/such/model`" in message
    assert "partition" not in message.partition("gate")[2]


def test_a_damaged_data_file_is_refused(refused: Refused, news: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "data" / "news" / "news_data.h5"
    with h5py.File(path, "w"):
        pass
    assert "has no `/attributes`" in refused(["run", "small"])


def test_an_unknown_data_set_is_refused(refused: Refused) -> None:
    assert "unknown data set `r9` to prepare" in refused(["data", "prepare", "r9"])


# ---- the machine


def test_compute_that_does_not_fit_is_refused_for_real_only(refused: Refused, flame: Any) -> None:
    tight = ["run", "small", "--delay-factor", "1e5", "--dry-run", "--only", "plain"]
    message = refused([*tight, *REAL, "--force"])
    assert "can't work plain: compute doesn't fit the delays" in message
    assert "lower `--delay-factor` (now 100000)" in message
    assert flame(*tight).exit_code == 0


def test_the_fidelity_tier_is_not_held_against_the_delays(flame: Any) -> None:
    wild = ["--set", "commit_order=arrival", "--set", "pacing=relative"]
    assert flame("run", "small", "--delay-factor", "1e5", *wild, *REAL, "--dry-run").exit_code == 0


def test_a_broker_that_does_not_answer_is_refused(refused: Refused) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        message = refused(["run", "small", "--broker", f"127.0.0.1:{port}", *REAL])
    assert f"can't work no broker answers at `127.0.0.1:{port}`" in message


def test_a_missing_broker_program_is_refused(refused: Refused, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flame.runtime.broker.find_mosquitto", lambda: None)
    assert "`--broker mosquitto`: the program isn't installed; run `apt-get install mosquitto`" in refused(
        ["run", "small", "--broker", "mosquitto", *REAL]
    )
    monkeypatch.setattr(gate, "find_spec", lambda name: None)
    assert "needs the package amqtt" in refused(["run", "small", *REAL])


def test_too_little_memory_is_refused(refused: Refused, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "_available", lambda: 1 << 20)
    message = refused(["run", "small", *REAL, "--force"])
    assert "MiB are needed, 1 MiB are free; lower `--workers`" in message


def test_strays_are_refused_and_a_run_that_is_going_is_said(refused: Refused, flame: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "traces", lambda runs: [Trace(Path("runs/old"), None, (123456,))])
    assert "can't work old left processes behind: 123456; add `--clean`" in refused(["run", "small", "--force"])
    monkeypatch.setattr(preflight, "traces", lambda runs: [Trace(Path("runs/other"), 99, (123456,))])
    result = flame("run", "small", "--dry-run", *REAL)
    assert result.exit_code == 0
    assert "other is still going (pid 99)" in result.stdout


# ---- unwise


def test_a_gate_without_a_cap_needs_force(refused: Refused, flame: Any) -> None:
    uncapped = ["run", "small", "--only", "gated", "--set", "commit=[{type: variance, threshold: 0.3}]", "--dry-run"]
    message = refused(uncapped)
    assert "unwise gated: `commit` has a variance gate and no cap" in message
    assert "add `{type: cap, max: 60}`" in message
    assert flame(*uncapped, "--force").exit_code == 0


@pytest.mark.parametrize(
    ("commit", "unwise"),
    [("[{type: n_eff, n: 20}]", True), ("[{type: n_eff, n: 20}, {type: cap, max: 9}]", False), ("[{type: pool_size, n: 20}]", False)],
)
def test_a_gate_on_n_eff_needs_a_cap_and_a_pool_size_does_not(flame: Any, commit: str, unwise: bool) -> None:
    shown = flame("run", "small", "--only", "gated", "--set", f"commit={commit}", "--dry-run", "--force").stdout
    assert ("`commit` has an n_eff gate and no cap" in " ".join(shown.split())) is unwise


def test_goals_of_compared_baselines_must_be_equal(refused: Refused, sections: dict[str, Any]) -> None:
    sections["run_sets"]["small"]["override"] = {"plain": {"goal": 1}}
    assert "can't work `goal` K differs between baselines that are compared: gated 2, plain 1" in refused(["run", "small", "--force"])


@pytest.mark.parametrize(("rule", "flag"), [("target", "--target-acc=0.5"), ("stall", "--stall-window-s=60")])
def test_rules_about_evaluations_without_any_are_refused(rule: str, flag: str, refused: Refused) -> None:
    assert f"`stop.{rule}` looks at evaluations, and `eval.every` is 0" in refused(["run", "small", flag, "--set", "eval.every=0"])


def test_a_synchronous_goal_that_leavers_make_unreachable_is_unwise(refused: Refused) -> None:
    leaving = [part for node in ("t0", "t1", "t2") for part in ("--set", f"population.leaves.{node}=1")]
    assert "`goal` K = 2, but only 1 trainers stay" in refused(["run", "small", "--only", "gated", *leaving])


TRACKING = ["--set", "sizes={type: var_tracking, goal_min: 1, goal_max: 3}"]


def test_a_goal_that_may_grow_past_who_stays_is_unwise(refused: Refused, flame: Any) -> None:
    leaving = ["--only", "gated", "--set", "loop=async", "--set", "population.leaves.t0=1", "--set", "population.leaves.t1=1"]
    assert "gated: `sizes.goal_max` K = 3, but only 2 trainers stay to the end" in refused(["run", "small", *leaving, *TRACKING])
    assert flame("run", "small", *leaving, "--dry-run").exit_code == 0


def test_tracking_what_every_close_commits_is_unwise(refused: Refused) -> None:
    message = refused(["run", "small", "--only", "plain", *TRACKING])
    assert "plain: `sizes` var_tracking under `agg_goal`: each bin takes one cycle, so K only falls" in message
