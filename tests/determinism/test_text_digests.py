"""The digest of a run on text, with a real language model: the prefix cache, processes, ties and the codec change no bit."""

from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from flame.config import Condition, World
from flame.learn.learner import Learner, build
from flame.runtime.compute.executors import Pool

from .digests import digest, sequence, simulate

pytestmark = pytest.mark.text

LABELS = ("earn", "acq", "grain", "ship")
OF = Condition.model_validate(
    {
        "task": "text", "data": "small", "model": "minilm", "tokens": 64, "trainable": {"part": "bitfit", "last_layers": 1},
        "trainers": 3, "goal": 3, "concurrency": 3, "delays": {"values": [1.0, 2.0, 1.0]}, "loop": "sync", "perturb": "guided",
        "estimator": {"type": "central_difference"}, "server_opt": {"type": "sgd", "lr": 0.05}, "payload": {"down": "once_per_version"},
        "commit": [{"type": "cap", "max": 1}], "eval": {"rows": 16}, "stop": {"cycles": 2},
    }
)  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A made-up set of 72 train and 16 test lines, dealt to three trainers."""
    from flame.learn.data import ensure_partition
    from flame.learn.data.fednlp import Corpus, write_corpus

    folder, rng = tmp_path_factory.mktemp("data"), np.random.default_rng(1)
    labels = rng.integers(0, len(LABELS), 88)
    lines = [f"{LABELS[label]} " + " ".join(rng.choice(("oil", "profit", "rate", "tonnes", "said"), 12)) for label in labels]
    (folder / "small").mkdir()
    write_corpus(folder / "small" / "small_data.h5", Corpus(lines, labels, LABELS, np.arange(88), np.arange(72), np.arange(72, 88)))
    ensure_partition(folder / "small" / "small_data.h5", "uniform", 3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FLAME_DATA", str(folder))
        learner.cache_clear()
        yield


@cache
def learner(prefix_cache: bool) -> Learner:
    """Loaded once a module."""
    return build(OF, prefix_cache=prefix_cache)


@pytest.fixture(scope="module")
def reference(data: None, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The digest of a run whose activations are all computed afresh."""
    folder = tmp_path_factory.mktemp("reference")
    simulate(folder, OF, World(prefix_cache=False), learner=learner(False))
    assert len(set(sequence(folder)[1])) == 2  # two closes, two models
    return digest(folder)


@pytest.mark.parametrize("visit", ["first", "again"])
def test_cached_and_uncached_prefixes(visit: str, reference: str, tmp_path: Path) -> None:
    before = learner(True).counts()
    simulate(tmp_path, OF, learner=learner(True))
    after = learner(True).counts()
    assert after["prefix_misses" if visit == "first" else "prefix_hits"] > before["prefix_misses" if visit == "first" else "prefix_hits"]
    assert digest(tmp_path) == reference


def test_ties_and_the_way_through_the_codec(reference: str, tmp_path: Path) -> None:
    simulate(tmp_path, OF, World(wire="roundtrip"), ties=Random(3), learner=learner(True))
    assert digest(tmp_path) == reference


@pytest.mark.parametrize("size", [1, 2])
def test_the_number_of_compute_processes(size: int, reference: str, tmp_path: Path) -> None:
    pool = Pool(partial(build, OF), size)
    try:
        simulate(tmp_path, OF, executor=pool, learner=learner(True))
    finally:
        pool.close()
    assert digest(tmp_path) == reference


PERTURBATIONS: dict[str, dict[str, Any]] = {
    "mean_of": {"perturb": {"type": "mean_of", "probes": 4}, "server_opt": {"type": "trust_ratio", "rho": 0.05}},
    "best_of": {"perturb": {"type": "best_of", "probes": 4}, "server_opt": {"type": "sgd", "lr": 0.05}},
    "guided": {"perturb": {"type": "guided", "candidates": 4}, "server_opt": {"type": "sgd", "lr": 0.05}},
}


def head(name: str, **payload: str) -> Condition:
    """A head on kept features, float32 as all text is: asynchronous, several versions behind at times."""
    plain = OF.model_dump(mode="json") | {
        "trainable": {"part": "head"}, "loop": "async", "goal": 1, "commit": ["agg_goal"], "eval": {"every": 0}, "stop": {"cycles": 8},
        "estimator": {"type": "forward_ad"}, "payload": payload,
    }  # fmt: skip
    return Condition.model_validate(plain | PERTURBATIONS[name])


@pytest.mark.parametrize("name", PERTURBATIONS)
def test_scalars_and_logs_lead_to_the_bits_of_whole_vectors(name: str, tmp_path: Path) -> None:
    found = {}
    for down, up in (("always_full", "dense"), ("once_per_version", "seeds"), ("delta", "dense"), ("replay", "seeds")):
        of = head(name, down=down, up=up)
        simulate(tmp_path / f"{down} {up}", of, learner=build(of))
        found[down, up] = sequence(tmp_path / f"{down} {up}")
    assert len(set(found["replay", "seeds"][1])) == 8
    assert all(other == found["always_full", "dense"] for other in found.values())
