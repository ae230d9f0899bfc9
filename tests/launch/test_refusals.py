"""What can't be run is refused before anything starts: field, value, and what to type instead."""

import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from flame.launch.folder.clean import Trace
from flame.launch.preflight import findings, gate, measure
from flame.learn.data.fednlp import Corpus, write_corpus

Refused = Callable[[Sequence[str]], str]
REAL = ["--mode", "real", "--yes"]

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
    del small["toy"]
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
    monkeypatch.setattr("flame.runtime.brokers.broker.find_mosquitto", lambda: None)
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
    monkeypatch.setattr(findings, "traces", lambda runs: [Trace(Path("runs/old"), None, (123456,))])
    assert "can't work old left processes behind: 123456; add `--clean`" in refused(["run", "small", "--force"])
    monkeypatch.setattr(findings, "traces", lambda runs: [Trace(Path("runs/other"), 99, (123456,))])
    result = flame("run", "small", "--dry-run", *REAL)
    assert result.exit_code == 0
    assert "other is still going (pid 99)" in result.stdout


def test_a_dry_run_says_what_clean_would_end_and_ends_nothing(flame: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[Trace] = []
    monkeypatch.setattr(findings, "traces", lambda runs: [Trace(Path("runs/old"), None, (123456,))])
    monkeypatch.setattr(findings, "clean", ended.extend)
    result = flame("run", "small", "--clean", "--dry-run")
    assert result.exit_code == 0
    assert "`--clean` would end 123456, which old left behind" in " ".join(result.stdout.split())
    assert not ended


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
