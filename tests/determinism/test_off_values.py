"""Off is a value: a feature that is written out as switched off leaves the journal that its absence leaves, byte for byte.

Whoever adds an optional feature adds a row.
"""

from pathlib import Path
from typing import Any, NamedTuple

import pytest

import flame
from flame.config import Condition

PLAIN: dict[str, Any] = {
    "trainers": 10, "goal": 3, "concurrency": 6, "loop": "async", "select": "async_oort", "commit": ["agg_goal"], "toy": {"features": 100},
    "delays": {"values": [0.15, 0.2, 0.25, 0.25, 0.3, 0.3, 0.4, 0.5, 0.5, 0.6]}, "stop": {"cycles": 20},
}  # fmt: skip
PHONES = {"trace": "phone_2st", "time_scale": 6000}
SGD = {"type": "sgd", "lr": 0.01}
TRUST = {"type": "trust_ratio", "rho": 0.1}
LONGEST = {"type": "best_of", "probes": 5}
ALIGNED = {"type": "grad_aware", "base": "felix"}
GATE = [{"type": "variance", "threshold": 0.05}, {"type": "cap", "max": 6}]


class Feature(NamedTuple):
    """One optional feature. off: as it is written out. on: at work, whose journal must differ, or `off` proves nothing.

    within: what else both runs say, and the one without it.
    """

    off: dict[str, Any]
    on: dict[str, Any]
    within: dict[str, Any] = {}


FEATURES = {
    "availability": Feature({"availability": {"trace": "syn_0"}}, {"availability": PHONES}),
    "abandon": Feature(
        {"availability": PHONES | {"abandon_s": None}}, {"availability": PHONES | {"abandon_s": 900}}, {"availability": PHONES}
    ),
    "awareness": Feature({"awareness": "none"}, {"awareness": "oracular"}, {"availability": PHONES}),
    "down": Feature({"payload": {"down": "always_full"}}, {"payload": {"down": "delta"}}),
    "up": Feature({"payload": {"up": "dense"}}, {"payload": {"up": "seeds"}}),
    "wire_dtype": Feature({"payload": {"wire_dtype": "f32"}}, {"payload": {"wire_dtype": "bf16"}}),
    "sizes": Feature({"sizes": "static"}, {"sizes": {"type": "var_tracking", "target": 1, "goal_min": 1, "goal_max": 5}}, {"commit": GATE}),
    "wan": Feature({"wan": {"seconds": 0, "down_mbit": None, "up_mbit": None}}, {"wan": {"seconds": 0.05}}),
    "charged evaluation": Feature({"eval": {"seconds": 0, "blocks": False}}, {"eval": {"seconds": 0.2, "blocks": True}}),
    "population": Feature({"population": {"joins": {}, "leaves": {}}}, {"population": {"joins": {"t3": 0.4}}}),
    "changes": Feature({"changes": []}, {"changes": [{"cycle": 3, "set": {"server_opt.lr": 0.9}}]}),
    "stall": Feature({"stop": {"cycles": 20, "stall": None}}, {"stop": {"cycles": 20, "stall": {"window_s": 0.1, "min_delta": 0.9}}}),
    "staleness": Feature({"staleness": "accept"}, {"staleness": "exact"}),
    "staleness unit": Feature({"staleness_unit": "version"}, {"staleness_unit": "cycle"}, {"rate": "fedbuff", "commit": GATE}),
    "cap of the step": Feature({"server_opt": TRUST | {"cap": None}}, {"server_opt": TRUST | {"cap": 0.01}}, {"server_opt": TRUST}),
    "schedule": Feature(
        {"server_opt": TRUST | {"schedule": "constant"}}, {"server_opt": TRUST | {"schedule": "inverse"}}, {"server_opt": TRUST}
    ),
    "decay": Feature({"server_opt": SGD | {"decay": "none"}}, {"server_opt": SGD | {"decay": "round"}}),
    "coin": Feature({"perturb": LONGEST | {"coin": False}}, {"perturb": LONGEST | {"coin": True}}, {"perturb": LONGEST}),
    "inverse variance": Feature({"rate": ALIGNED | {"var_ref": None}}, {"rate": ALIGNED | {"var_ref": 0.01}}, {"rate": ALIGNED}),
    "blacklist": Feature(
        {"select": {"type": "async_oort", "blacklist": None}}, {"select": {"type": "async_oort", "blacklist": 2}}, {"select": "async_oort"}
    ),
}  # fmt: skip


def journal(runs: Path, changes: dict[str, Any]) -> bytes:
    """The steps of the run, without the header, which names it."""
    done = flame.run(Condition.model_validate(PLAIN | changes), runs=runs)
    return (done.path / "journal" / "sim-1.jsonl").read_bytes().split(b"\n", 1)[1]


@pytest.mark.parametrize("name", FEATURES)
def test_the_off_value_and_the_absent_key_give_the_same_journal(name: str, tmp_path: Path) -> None:
    feature = FEATURES[name]
    absent = journal(tmp_path, feature.within)
    assert journal(tmp_path, feature.within | feature.off) == absent
    assert journal(tmp_path, feature.within | feature.on) != absent
