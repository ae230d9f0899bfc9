"""Staleness and rate rules, and what all policies share."""

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from flame.core.progress import Progress
from flame.core.time import SECOND
from flame.policies.commit import Commit, Variance
from flame.policies.payload import AlwaysFull
from flame.policies.perturb import Guided, Perturb, Single
from flame.policies.rate import Constant, Rate
from flame.policies.select import All, AsyncOort, FedBuff, Oort, Random, Select
from flame.policies.server_opt import ServerOpt, Sgd
from flame.policies.staleness import Staleness, Unit, age, refusal

AT = Progress(round=2, data_id=1, iteration=3, model_version=7, cycle=40)


@pytest.mark.parametrize(
    ("policy", "version", "iteration", "why"),
    [
        ("exact", 7, 3, None),
        ("exact", 7, 2, "iteration 2 is not the current 3"),
        ("exact", 6, 3, "version 6 is not the current 7"),
        ("exact", 6, 2, "version 6 is not the current 7"),
        ("same_bin", 7, 3, None),
        ("same_bin", 7, 0, None),
        ("same_bin", 6, 3, "version 6 is not the current 7"),
        ("accept", 7, 3, None),
        ("accept", 0, 0, None),
    ],
)
def test_staleness(policy: Staleness, version: int, iteration: int, why: str | None) -> None:
    assert refusal(policy, version, iteration, AT) == why


@pytest.mark.parametrize(
    ("unit", "s"),
    [("version", 2), ("cycle", 9), ("stamp", 1.5)],
)
def test_an_age_is_in_commits_cycles_or_seconds(unit: Unit, s: float) -> None:
    """Asked for at version 5, cycle 31, 0.5 s; released at version 7, cycle 40, 2 s."""
    assert age(unit, AT, 2 * SECOND, version=5, cycle=31, stamp=SECOND // 2) == s


@pytest.mark.parametrize(
    ("kind", "written", "policy"),
    [
        (Select, "random", Random()),
        (Select, "all", All()),
        (Select, "fedbuff", FedBuff()),
        (Select, {"type": "oort", "blacklist": 9}, Oort(blacklist=9)),
        (Select, "async_oort", AsyncOort()),
        (Select, {"type": "random", "every": "round"}, Random(every="round")),
        (Rate, "constant", Constant()),
        (Perturb, "single", Single()),
        (Perturb, "guided", Guided(candidates=10)),
        (ServerOpt, {"type": "sgd", "lr": 0.5}, Sgd(lr=0.5)),
        (Commit, {"type": "variance", "threshold": 0.3}, Variance(threshold=0.3)),
    ],
)
def test_a_policy_is_written_by_name_or_spelled_out(kind: Any, written: Any, policy: Any) -> None:
    assert TypeAdapter(kind).validate_python(written) == policy


@pytest.mark.parametrize("kind", [Select, Rate, Perturb, ServerOpt, Commit])
@pytest.mark.parametrize("written", ["randm", {"type": "nothing"}, 7])
def test_an_unknown_name_is_refused(kind: Any, written: Any) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(kind).validate_python(written)


@pytest.mark.parametrize(
    "policy",
    [All(), Random(), FedBuff(), Oort(), AsyncOort(), Constant(), Single(), Guided(), Sgd(lr=1.0), Variance(threshold=1.0), AlwaysFull()],
)
def test_a_policy_is_frozen_and_refuses_what_it_does_not_know(policy: Any) -> None:
    with pytest.raises(ValidationError):
        policy.anything = 1
    with pytest.raises(ValidationError, match="anything"):
        type(policy).model_validate(policy.model_dump() | {"anything": 1})
