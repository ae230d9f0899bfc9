"""Small simulated runs, and their records read as plain JSON."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from flame.analysis.learned import Learned
from flame.config import Condition
from flame.launch.run import run
from flame.telemetry.rundir import RunDir

PLAIN: dict[str, Any] = {
    "baseline": "plain", "trainers": 6, "goal": 2, "concurrency": 4, "loop": "async", "select": "random",
    "commit": [{"type": "variance", "threshold": 0.5}, {"type": "cap", "max": 3}], "perturb": {"type": "mean_of", "probes": 3},
    "delays": {"values": [1, 2, 3.5]}, "stop": {"cycles": 25}, "server_opt": {"type": "sgd", "lr": 0.3},
    "payload": {"down": "once_per_version"},
}  # fmt: skip
AWAY: dict[str, Any] = {
    "availability": {"trace": "phone_2st", "time_scale": 600}, "wan": {"seconds": 0.25}, "stop": {"runtime_s": 400},
    "population": {"joins": {"t5": 20.0}, "leaves": {"t0": 90.0}},
}  # fmt: skip


@pytest.fixture(scope="session")
def simulate(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., RunDir]:
    """Run `PLAIN` with these fields changed, once each."""
    made: dict[bytes, RunDir] = {}
    runs = tmp_path_factory.mktemp("analysed")

    def simulated(**changes: Any) -> RunDir:
        key = orjson.dumps(changes, option=orjson.OPT_SORT_KEYS)
        if key not in made:
            made[key] = RunDir(run(Condition.model_validate(PLAIN | changes), runs=runs).path)
        return made[key]

    return simulated


@pytest.fixture(scope="session")
def plain(simulate: Callable[..., RunDir]) -> Learned:
    return Learned(simulate())


@pytest.fixture(scope="session")
def away(simulate: Callable[..., RunDir]) -> Learned:
    """Its trainers come and go, one joins late, one leaves for good, and messages take time."""
    return Learned(simulate(**AWAY))


def records(path: Path, kind: str) -> list[dict[str, Any]]:
    """The records of a kind, in file order."""

    def lines() -> Iterator[dict[str, Any]]:
        for file in sorted((path / "telemetry").glob("*.jsonl")):
            yield from (orjson.loads(line)["record"] for line in file.read_bytes().splitlines())

    return [record for record in lines() if record["kind"] == kind]
