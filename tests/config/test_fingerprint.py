"""Fingerprints: equal exactly for runs that compute the same, whatever carries them out."""

import os
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st
from pydantic import ValidationError

from flame.config import Condition, World
from flame.config.fingerprint import SHARED, condition_fp, run_fp
from flame.runtime.books.process_books import write_condition

PLAIN: dict[str, Any] = {"task": "text", "data": "r8", "stop": {"cycles": 5}}

OTHERS: dict[str, list[Any]] = {
    "baseline": ["other"],
    "seed": [2],
    "task": ["surrogate"],
    "toy": [{"features": 21}, {"classes": 4}, {"samples": 65}, {"noise": 0.5}],
    "surrogate": [{"parameters": 5}, {"bins": 7}],
    "data": ["agnews"],
    "model": ["other"],
    "partition": [{"type": "niid_label"}, {"type": "niid_label", "alpha": 2}],
    "trainable": [
        {"part": "bitfit"},
        {"part": "bitfit", "last_layers": 1},
        {"part": "lora"},
        {"part": "lora", "r": 4},
        {"part": "lora", "alpha": 4},
        {"part": "adapter"},
        {"part": "adapter", "width": 4},
        {"part": "all"},
    ],
    "changes": [[{"cycle": 3, "set": {"server_opt.lr": 0.5}}]],
    "tokens": [65],
    "batch_size": [9],
    "max_bins": [3],
    "trainers": [11],
    "goal": [9],
    "concurrency": [11],
    "sizes": [{"type": "var_tracking", "goal_max": 10} | more
              for more in ({}, {"target": 3}, {"step": 3}, {"window": 2}, {"goal_min": 4}, {"concurrency_min": 9})],
    "delays": [{"values": [2]}, {"values": [1, 1]}, {"values": [1], "factor": 2}, {"lognormal": {}}, {"lognormal": {"sd": 1}},
               {"registry": "a.json"}, {"registry": "b.json"}, {"registry": "a.json", "reuse": True}, {"ai_benchmark": {"path": "a.json"}},
               {"ai_benchmark": {"path": "a.json", "reference_s": 5}}],
    "wan": [{"seconds": 0.1}, {"down_mbit": 10}, {"up_mbit": 10}],
    "population": [{"joins": {"t1": 3}}, {"leaves": {"t1": 3}}],
    "availability": [{"trace": "syn_10"}, {"trace": "phone_2st"}, {"trace": "syn_10", "time_scale": 2}, {"abandon_s": 90},
                     {"trace": "file", "path": "a.json"}, {"trace": "file", "path": "a.json", "key": "3st_50"}],
    "awareness": ["oracular", "notified"],
    "loop": ["async"],
    "select": ["random", {"type": "random", "every": "round"}],
    "staleness": ["exact", "same_bin"],
    "staleness_unit": ["cycle", "stamp"],
    "commit": [["agg_goal"], [{"type": "variance", "threshold": 0.2}], [{"type": "cap", "max": 3}]],
    "payload": [{"down": "once_per_version"}, {"down": "delta"}, {"up": "seeds"}, {"down": "replay", "up": "seeds"},
                {"wire_dtype": "bf16"}],
    "perturb": [
        "guided",
        "mean_of",
        "best_of",
        {"type": "best_of", "coin": True},
        {"type": "guided", "candidates": 3},
        {"type": "single", "distribution": "sphere"},
        {"type": "split", "shares": 2},
        {"type": "split", "shares": 2, "of": {"type": "mean_of", "probes": 3}},
    ],
    "estimator": [{"type": "backprop"}, {"type": "backprop", "checkpointed": True}, {"chunk": 1},
                  {"type": "central_difference"}, {"type": "central_difference", "h": 0.02}, {"type": "central_difference", "h": "auto"}],
    "server_opt": [{"type": "sgd", "lr": 0.02}, {"type": "sgd", "lr": 0.01, "decay": "round"}, "nesterov", "trust_ratio"],
    "rate": ["fedbuff", "felix", "grad_aware", {"type": "grad_aware", "base": "fedbuff"}, {"type": "grad_aware", "var_ref": 1}],
    "eval": [{"rows": 5}, {"every": 2}, {"seconds": 1}, {"seconds": 1, "blocks": True}],
    "stop": [{"cycles": 6}, {"commits": 5}, {"cycles": 5, "runtime_s": 9}, {"cycles": 5, "target": {"accuracy": 0.5}},
             {"cycles": 5, "target": {"accuracy": 0.5}, "stall": None}, {"cycles": 5, "stall": {"on": "loss"}}],
    "limits": [{"max_rejects": 70}],
}  # fmt: skip
"""Other values of each field, one at a time."""
TOY, SURROGATE = {"task": "toy", "data": None}, {"task": "surrogate", "data": None}
BESIDE = {"task": TOY, "toy": TOY, "surrogate": SURROGATE}
"""Fields that nobody hears in a task of texts, with what is about them instead."""
ONE_VALUE = {"commit_order", "pacing"}
"""Fields that have one value only, or change together."""
IN_NO_FINGERPRINT = {"grace_s": 3, "resend_s": 9, "respawns": 1, "chunk_bytes": 4096, "ready_wait_s": 3, "heartbeat_s": 1}

CASES = [(field, value) for field, values in OTHERS.items() for value in values]


def make(**changes: Any) -> Condition:
    """A condition; `changes` replace whole fields."""
    return Condition.model_validate(PLAIN | changes)


def test_every_field_of_a_condition_is_looked_at() -> None:
    assert OTHERS.keys() | ONE_VALUE == Condition.model_fields.keys()


@pytest.mark.parametrize(("field", "value"), CASES, ids=[f"{field}-{value}" for field, value in CASES])
def test_each_field_changes_the_run(field: str, value: Any) -> None:
    plain, changed = make(**BESIDE.get(field, {})), make(**BESIDE.get(field, {}) | {field: value})
    assert run_fp(changed) != run_fp(plain)
    assert (condition_fp(changed) != condition_fp(plain)) == (field in SHARED)


def test_order_and_pacing_change_the_run() -> None:
    wild = make(commit_order="arrival", pacing="relative")
    assert run_fp(wild) != run_fp(make())
    assert condition_fp(wild) != condition_fp(make())


@pytest.mark.parametrize(("limit", "value"), IN_NO_FINGERPRINT.items())
def test_bounds_of_waiting_change_nothing(limit: str, value: int) -> None:
    assert run_fp(make(limits={limit: value})) == run_fp(make())


def test_a_default_that_is_written_out_is_the_same_run() -> None:
    assert run_fp(make(trainers=10, limits={"max_rejects": 100}, select={"type": "all"})) == run_fp(make())
    assert run_fp(make(sizes="static")) == run_fp(make())
    assert run_fp(make(wan={"seconds": 0, "up_mbit": None})) == run_fp(make())
    assert run_fp(make(availability={"trace": "syn_0", "time_scale": 1, "abandon_s": None}, awareness="none")) == run_fp(make())
    assert run_fp(make(payload={"down": "always_full", "up": "dense", "wire_dtype": "f32"})) == run_fp(make())


def _possible(changes: list[tuple[str, Any]]) -> Condition:
    """A condition with all that goes together."""
    try:
        return make(**{key: value for field, _ in changes for key, value in BESIDE.get(field, {}).items()} | dict(changes))
    except ValidationError:
        reject()


@given(st.lists(st.sampled_from(CASES), max_size=4), st.lists(st.sampled_from(CASES), max_size=4))
def test_equal_fingerprints_are_equal_conditions(mine: list[tuple[str, Any]], yours: list[tuple[str, Any]]) -> None:
    one, other = _possible(mine), _possible(yours)
    assert (run_fp(one) == run_fp(other)) == (one == other)
    assert run_fp(Condition.model_validate_json(one.model_dump_json())) == run_fp(one)


def test_both_worlds_store_the_same_fingerprints(tmp_path: Path) -> None:
    worlds = [
        World(), World(kind="real"), World(kind="real", broker="mosquitto", workers=5), World(pool=2),
        World(prefix_cache=False), World(wire="roundtrip"), World(level="summary", blobs="none", journal=False),
    ]  # fmt: skip
    found = set()
    for number, world in enumerate(worlds):
        write_condition(tmp_path / str(number), make(), world)
        stored = orjson.loads((tmp_path / str(number) / "condition.json").read_bytes())
        found.add((stored["run_fp"], stored["condition_fp"]))
    assert found == {(run_fp(make()), condition_fp(make()))}


@pytest.mark.parametrize(
    "naming",
    [
        lambda path: {"delays": {"registry": path}},
        lambda path: {"delays": {"ai_benchmark": {"path": path}}},
        lambda path: {"availability": {"trace": "file", "path": path}},
    ],
)
def test_a_file_counts_with_its_contents(naming: Any, tmp_path: Path) -> None:
    file = tmp_path / "devices.json"
    what = make(**naming(str(file)))
    prints = []
    for text in (None, "[1, 2]", "[1, 3]", "[1, 2]"):
        if text is not None:
            file.write_text(text)
            os.utime(file, ns=(len(prints), len(prints)))  # a clock may be too coarse to tell two writes apart
        prints.append((run_fp(what), condition_fp(what)))
    absent, first, second, again = prints
    assert first == again
    assert len({absent[0], first[0], second[0]}) == len({absent[1], first[1], second[1]}) == 3
