"""A simulation's digest hangs on its condition alone: not on hash seeds, ties, processes, the codec, or what is recorded."""

import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

from flame.config import World
from flame.learn.learner import build
from flame.runtime.compute.executors import Pool

from .digests import CONDITIONS, condition, digest, sequence, simulate

ROOT = Path(__file__).parents[2]
Digest = Callable[..., str]


@pytest.fixture
def digest_of(tmp_path: Path) -> Digest:
    """Simulates anew and gives the digest; keywords as of `simulate`, `changes` of the condition, `world` of the world."""

    def run(name: str, *, changes: dict[str, Any] | None = None, world: dict[str, Any] | None = None, **how: Any) -> str:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        simulate(folder, condition(name, **(changes or {})), World.model_validate(world or {}), **how)
        return digest(folder)

    return run


@pytest.mark.parametrize("name", CONDITIONS)
class TestEqual:
    """Whatever must not matter doesn't."""

    def test_the_same_again(self, name: str, digest_of: Digest) -> None:
        assert digest_of(name) == digest_of(name)

    @pytest.mark.parametrize("hash_seed", ["0", "1", "42"])
    def test_the_hash_seed(self, name: str, hash_seed: str, digest_of: Digest) -> None:
        command = [sys.executable, "-m", "tests.determinism.digests", name]
        done = subprocess.run(command, cwd=ROOT, env=os.environ | {"PYTHONHASHSEED": hash_seed}, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == digest_of(name)

    def test_the_order_of_what_happens_at_one_instant(self, name: str, digest_of: Digest) -> None:
        assert {digest_of(name, ties=Random(seed)) for seed in range(8)} == {digest_of(name)}

    def test_the_way_through_the_codec(self, name: str, digest_of: Digest) -> None:
        assert digest_of(name, world={"wire": "roundtrip"}) == digest_of(name)

    @pytest.mark.parametrize("level", ["commits", "summary"])
    def test_the_level_of_the_telemetry(self, name: str, level: str, digest_of: Digest) -> None:
        assert digest_of(name, world={"level": level}) == digest_of(name)

    def test_whether_tensors_are_kept(self, name: str, digest_of: Digest, tmp_path: Path) -> None:
        assert digest_of(name, world={"blobs": "none"}) == digest_of(name)
        assert sorted(path.parent.name for path in tmp_path.glob("*/blobs")) == ["1"]  # it was switched off where it should be

    @pytest.mark.parametrize("size", [1, 2])
    def test_the_number_of_compute_processes(self, name: str, size: int, digest_of: Digest) -> None:
        pool = Pool(partial(build, condition(name)), size)
        try:
            assert digest_of(name, executor=pool) == digest_of(name)
            assert pool.counts()["tasks"] > 20
        finally:
            pool.close()


@pytest.mark.parametrize("name", CONDITIONS)
class TestDifferent:
    """The digest sees what it should: else equality would prove nothing."""

    @pytest.mark.parametrize(
        "changes",
        [
            {"seed": 2},
            {"server_opt": {"type": "sgd", "lr": 0.200001}},
            {"delays": {"values": [1.0, 1.0, 0.5, 2.0, 2.0, 1.500000001]}},
            {"stop": {"cycles": 19}},
        ],
    )
    def test_another_condition(self, name: str, changes: dict[str, Any], digest_of: Digest) -> None:
        assert digest_of(name, changes=changes) != digest_of(name)

    def test_a_run_without_a_journal_proves_nothing(self, name: str, digest_of: Digest) -> None:
        with pytest.raises(ValueError, match="has it a journal"):
            digest_of(name, world={"journal": False})


def test_the_conditions_reach_what_they_should(tmp_path: Path) -> None:
    """Gated bins of several iterations and a reason each; ties; a join, a leave and evaluations among the rows."""
    for name in CONDITIONS:
        simulate(tmp_path / name, condition(name))
    gated, gated_models = sequence(tmp_path / "gated")
    mixed, mixed_models = sequence(tmp_path / "async")
    assert len(gated_models) == len(mixed_models) == 20
    assert 5 < len(set(gated_models)) < 20  # some closes keep, some commit
    assert len(set(mixed_models)) == 20
    for rows in (gated, mixed):
        assert len({stamp for stamp, *_ in rows}) < len(rows)
    assert {rank for _, rank, *_ in mixed} == {1, 2, 3, 5}
