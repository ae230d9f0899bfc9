"""Off is a value: a feature that is written out as switched off leaves the journal that its absence leaves, byte for byte.

Whoever adds an optional feature adds a row.
"""

from pathlib import Path
from typing import Any

import pytest

import flame
from flame.config import Condition

PLAIN: dict[str, Any] = {
    "trainers": 10, "goal": 3, "concurrency": 6, "loop": "async", "select": "async_oort", "commit": ["agg_goal"], "toy": {"features": 100},
    "delays": {"values": [0.15, 0.2, 0.25, 0.25, 0.3, 0.3, 0.4, 0.5, 0.5, 0.6]}, "stop": {"cycles": 20},
}  # fmt: skip

OFF: dict[str, dict[str, Any]] = {
    "availability": {"availability": {"trace": "syn_0"}},
    "down": {"payload": {"down": "always_full"}},
    "up": {"payload": {"up": "dense"}},
    "wire_dtype": {"payload": {"wire_dtype": "f32"}},
}
"""What is off, as it is written out."""

ON: dict[str, dict[str, Any]] = {
    "availability": {"availability": {"trace": "phone_2st", "time_scale": 6000}},
    "down": {"payload": {"down": "delta"}},
    "up": {"payload": {"up": "seeds"}},
    "wire_dtype": {"payload": {"wire_dtype": "bf16"}},
}
"""The same feature at work: its journal must differ, or the row above proves nothing."""


def journal(runs: Path, changes: dict[str, Any]) -> bytes:
    """The steps of the run, without the header, which names it."""
    done = flame.run(Condition.model_validate(PLAIN | changes), runs=runs)
    return (done.path / "journal" / "sim-1.jsonl").read_bytes().split(b"\n", 1)[1]


@pytest.fixture(scope="module")
def absent(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The journal of the run that says nothing of any of them."""
    return journal(tmp_path_factory.mktemp("absent"), {})


@pytest.mark.parametrize("feature", OFF)
def test_the_off_value_and_the_absent_key_give_the_same_journal(feature: str, absent: bytes, tmp_path: Path) -> None:
    assert journal(tmp_path, OFF[feature]) == absent
    assert journal(tmp_path, ON[feature]) != absent
