"""Whole simulated runs: what travels instead of vectors leads to the same bits, in the same order, to the same verdict."""

import re
from pathlib import Path
from typing import Any

import orjson
import pytest
from pydantic import ValidationError

from flame.config import Condition, World
from flame.config.condition import Wan
from flame.runtime.books.replay import replay

from .digests import condition, sequence, simulate

SHAPES: dict[str, dict[str, Any]] = {
    "single": {"loop": "async", "goal": 2, "concurrency": 5, "commit": ["agg_goal"], "perturb": "single"},
    "mean_of": {
        "loop": "async", "goal": 2, "concurrency": 5, "perturb": {"type": "mean_of", "probes": 5},
        "commit": [{"type": "pool_size", "n": 4}], "rate": {"type": "grad_aware", "base": "fedbuff"},
        "server_opt": {"type": "trust_ratio", "rho": 0.05, "schedule": "inverse", "over": 5},
    },
    "best_of": {
        "loop": "async", "goal": 2, "concurrency": 4, "perturb": {"type": "best_of", "probes": 4, "coin": True},
        "commit": [{"type": "variance", "threshold": 0.01}, {"type": "cap", "max": 3}],
        "server_opt": {"type": "clip", "norm": 0.5, "before": {"type": "sgd", "lr": 0.2}},
        "population": {"joins": {"t5": 2.0}, "leaves": {"t2": 3.0}},
    },
    "guided": {
        "loop": "sync", "goal": 3, "concurrency": 3, "staleness": "exact", "perturb": {"type": "guided", "candidates": 5},
        "commit": [{"type": "variance", "threshold": 0.02}, {"type": "cap", "max": 3}],
        "server_opt": {"type": "sgd", "lr": 0.2, "decay": "round", "rounds": 50},
    },
    "away": {
        "loop": "async", "goal": 2, "concurrency": 4, "commit": ["agg_goal"], "perturb": {"type": "mean_of", "probes": 3},
        "availability": {"trace": "syn_50", "time_scale": 300, "abandon_s": 600}, "awareness": "notified",
    },
    "split": {
        "loop": "async", "goal": 3, "concurrency": 5, "commit": ["agg_goal"],
        "perturb": {"type": "split", "shares": 2, "of": {"type": "guided", "candidates": 3}},
        "server_opt": {"type": "trust_ratio", "rho": 0.05, "schedule": "inverse"},
    },
    "cap": {
        "loop": "sync", "goal": 3, "concurrency": 4, "perturb": {"type": "best_of", "probes": 4, "coin": True}, "commit": ["agg_goal"],
        "server_opt": {"type": "trust_ratio", "rho": 0.5, "cap": 0.2},
    },
}  # fmt: skip
"""Bins wrap after three; trainers lag by several versions, join late and give up slots."""


TOY = {"features": 150, "samples": 24}
"""p = 453: weights that are longer than a log of some commits."""

WAN = {"seconds": 0.25, "down_mbit": 0.1, "up_mbit": 0.05}
"""A vector takes 0.3 s down and 0.6 s up, a scalar no time but the 0.25 s."""


def shape(name: str, **payload: str) -> Condition:
    return condition("async", **({"population": {}} | SHAPES[name] | {"payload": payload, "toy": TOY, "stop": {"cycles": 30}}))


def ran(folder: Path, of: Condition, world: World | None = None) -> tuple[Any, ...]:
    """Verdict and last instant, released rows, models."""
    outcome = simulate(folder, of, world)
    return outcome.verdict, outcome.now, *sequence(folder)


def kinds(folder: Path) -> dict[tuple[str, str], int]:
    """Bytes by direction and kind of payload."""
    found: dict[tuple[str, str], int] = {}
    for path in (folder / "telemetry").glob("*.jsonl"):
        for row in map(orjson.loads, path.read_bytes().splitlines()):
            record = row["record"] if isinstance(row["record"], dict) else row
            if record.get("kind", row["record"]) == "comm":
                key = record["direction"], record["payload"]
                found[key] = found.get(key, 0) + record["message_bytes"]
    return found


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize(("down", "up"), [("always_full", "seeds"), ("once_per_version", "seeds"), ("delta", "dense"), ("replay", "seeds")])
def test_the_run_is_the_one_of_whole_vectors(name: str, down: str, up: str, tmp_path: Path) -> None:
    plain = ran(tmp_path / "plain", shape(name, down="always_full", up="dense"))
    other = ran(tmp_path / "other", shape(name, down=down, up=up))
    assert len(set(plain[3])) > 5, "models that don't move prove nothing"
    assert other == plain
    sent = kinds(tmp_path / "other")
    assert {kind for direction, kind in sent if direction == "up"} == {up}
    if down in ("delta", "replay"):
        assert ("down", down) in sent


@pytest.mark.parametrize("name", ["mean_of", "guided"])
@pytest.mark.parametrize(
    "payload",
    [{"down": "replay", "up": "seeds"}, {"down": "delta", "up": "dense", "wire_dtype": "bf16"}],
    ids=["replay", "bf16"],
)
def test_it_replays_and_passes_the_codec(name: str, payload: dict[str, str], tmp_path: Path) -> None:
    of = shape(name, **payload)
    assert ran(tmp_path / "wire", of, World(wire="roundtrip")) == ran(tmp_path / "memory", of)
    nodes = replay(tmp_path / "wire")
    assert len(nodes) == 7
    assert [node for node in nodes if node.difference or node.skipped or not node.steps] == []


def test_rounded_vectors_make_another_run_and_delta_makes_the_same_one_of_it(tmp_path: Path) -> None:
    full = ran(tmp_path / "full", shape("mean_of", wire_dtype="bf16"))
    assert full[3] != ran(tmp_path / "f32", shape("mean_of"))[3]
    assert ran(tmp_path / "delta", shape("mean_of", down="delta", wire_dtype="bf16")) == full


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"payload": {"up": "seeds"}, "estimator": "backprop"}, "estimator: backprop` makes none; use `payload.up: dense`"),
    ({"payload": {"up": "seeds"}, "task": "surrogate"}, "task: surrogate` has its own; use `payload.up: dense`"),
    ({"payload": {"up": "seeds"}, "perturb": {"type": "best_of", "probes": 257}}, "has 257 to choose from; give at most 256"),
    ({"payload": {"up": "seeds"}, "perturb": {"type": "guided", "candidates": 300}}, "has 300 to choose from; give at most 256"),
    ({"payload": {"down": "replay"}}, "`payload.up: dense` doesn't say it; use `payload.up: seeds`"),
    ({"payload": {"down": "replay", "up": "seeds", "wire_dtype": "bf16"}}, "`payload.wire_dtype: bf16` rounds them; use `wire_dtype: f32`"),
    ({"payload": {"down": "replay", "up": "seeds"}, "server_opt": {"type": "adam", "lr": 0.1}}, "`server_opt: adam` has a state"),
    (
        {"payload": {"down": "replay", "up": "seeds"}, "server_opt": {"type": "clip", "norm": 1, "before": {"type": "momentum", "lr": 1}}},
        "`server_opt: clip` has a state",
    ),
]


@pytest.mark.parametrize(("changes", "why"), REFUSED, ids=[why[:40] for _, why in REFUSED])
def test_what_cannot_be_rebuilt_is_refused_with_a_remedy(changes: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=re.escape(why)):
        Condition.model_validate({"stop": {"cycles": 1}} | changes)


@pytest.mark.parametrize(("down", "up"), [("delta", "dense"), ("replay", "seeds")])
def test_with_legs_and_slots_given_up_it_replays_and_bytes_move_the_dues(down: str, up: str, tmp_path: Path) -> None:
    """Other bytes are another run, the same over the codec and in its replay."""
    of, plain = (shape("away", **payload).model_copy(update={"wan": Wan(**WAN)}) for payload in ({"down": down, "up": up}, {}))
    other = ran(tmp_path / "wire", of, World(wire="roundtrip"))
    assert other == ran(tmp_path / "memory", of)
    assert ("down", down) in kinds(tmp_path / "wire")
    assert [node for node in replay(tmp_path / "wire") if node.difference or node.skipped or not node.steps] == []
    if up == "seeds":
        assert other[2] != ran(tmp_path / "plain", plain)[2], "the legs weigh nothing"
