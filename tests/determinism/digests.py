"""The digest of a run: what was released, in order, and the model after each close. Equal digests, equal runs.

    python -m tests.determinism.digests gated

simulates one of `CONDITIONS` and prints its digest, so that a test can do it under another hash seed.
"""

import sys
from hashlib import blake2b
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import orjson

from flame.config import Condition, World
from flame.config.devices import profiles
from flame.core.messages import AGGREGATOR
from flame.learn.learner import Learner, build
from flame.roles.aggregator import Aggregator
from flame.roles.trainer import Trainer
from flame.runtime.books.journal import read
from flame.runtime.books.process_books import open_books, write_condition
from flame.runtime.compute.executors import Executor, Inline
from flame.runtime.sim import Outcome, Simulation

TOY: dict[str, Any] = {
    "task": "toy", "toy": {"features": 6, "samples": 24}, "trainers": 6, "stop": {"cycles": 20},
    "delays": {"values": [1.0, 1.0, 0.5, 2.0, 2.0, 1.5]}, "select": "random", "server_opt": {"type": "sgd", "lr": 0.2},
    "eval": {"rows": 32, "seconds": 0.5}, "payload": {"down": "once_per_version"},
}  # fmt: skip
CONDITIONS: dict[str, dict[str, Any]] = {
    "gated": {
        "loop": "sync", "goal": 3, "concurrency": 3, "staleness": "exact", "perturb": "guided",
        "commit": [{"type": "variance", "threshold": 0.02}, {"type": "cap", "max": 3}],
    },
    "async": {
        "loop": "async", "goal": 2, "concurrency": 4, "commit": ["agg_goal"],
        "population": {"joins": {"t5": 2.0}, "leaves": {"t2": 3.0}},
    },
    "resized": {
        "loop": "async", "goal": 2, "concurrency": 4, "commit": [{"type": "variance", "threshold": 0.02}, {"type": "cap", "max": 6}],
        "sizes": {"type": "var_tracking", "target": 2, "step": 1, "window": 1, "goal_min": 1, "goal_max": 4},
    },
    "weighed": {
        "loop": "async", "goal": 2, "concurrency": 4,
        "perturb": {"type": "split", "shares": 2, "of": {"type": "best_of", "probes": 4, "coin": True}},

        "rate": {"type": "grad_aware", "base": "felix", "floor": 0.5, "var_ref": 0.1}, "staleness_unit": "cycle",
        "commit": [
            {"type": "variance", "threshold": 0.01}, {"type": "plateau", "patience": 1}, {"type": "n_eff", "n": 9},
            {"type": "cap", "max": 6},
        ],
        "wan": {"seconds": 0.25, "down_mbit": 0.001, "up_mbit": 0.002},
        "server_opt": {"type": "clip", "norm": 1.0, "before": {"type": "adam", "lr": 0.1}},
    },
}  # fmt: skip
"""Delays tie often, so that an order that hangs on anything but the keys would show."""


def condition(name: str, **changes: Any) -> Condition:
    """One of `CONDITIONS`; `changes` are keys of the condition."""
    return Condition.model_validate(TOY | CONDITIONS[name] | changes)


def simulate(
    run: Path, of: Condition, world: World | None = None, *, ties: Random | None = None, executor: Executor | None = None,
    learner: Learner | None = None,
) -> Outcome:  # fmt: skip
    """Simulate into the directory `run`, as the launcher does. executor: closed by the caller."""
    world, learner = world or World(), learner or build(of)
    facts = learner.facts
    write_condition(run, of, world)
    books = open_books(run, "sim", "1", of, world, facts, [AGGREGATOR, *of.nodes])
    aggregator = Aggregator(of, facts.init, facts.bins, world.level, facts.layout)
    trainers = {node: Trainer(of, profile, world.level, facts.layout) for node, profile in profiles(of).items()}
    try:
        return Simulation(
            aggregator, trainers, executor or Inline(learner), books.journal, books.sink,
            wire_roundtrip=world.wire == "roundtrip", ties=ties,
        ).run()  # fmt: skip
    finally:
        books.close()


def sequence(run: Path) -> tuple[list[Any], list[str]]:
    """Keys of the released rows, and the model's digest after each close, from the aggregator's journal."""
    released: list[Any] = []
    models: list[str] = []
    for path in sorted((run / "journal").glob("*.jsonl")):
        for step in read(path)[1]:
            if step["node"] == AGGREGATOR:
                released += step["released"]
                records = (effect["record"] for effect in step["effects"] or () if effect["kind"] == "emit")
                models += [record["model"] for record in records if record["kind"] == "agg_round"]
    return released, models


def digest(run: Path) -> str:
    """The run's digest. Raises ValueError where nothing was released: two empty runs are no proof."""
    released, models = sequence(run)
    if not released or not models:
        raise ValueError(f"`{run.name}` has no released row or no close; has it a journal?")
    return blake2b(orjson.dumps([released, models]), digest_size=16).hexdigest()


def main(name: str) -> None:
    """Print the digest of one condition."""
    with TemporaryDirectory() as folder:
        simulate(Path(folder), condition(name))
        print(digest(Path(folder)))


if __name__ == "__main__":
    main(sys.argv[1])
