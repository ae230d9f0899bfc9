"""Commit rules, by hand: the gate, the cap, the goal, and how they are composed."""

from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import ValidationError

from flame.policies.commit import KEEP, AggGoal, BinView, Cap, Variance, first_match


def view(iteration: int = 0, uploads: int = 4, variance: float | None = 0.5) -> BinView:
    return BinView(iteration, uploads, variance)


@pytest.mark.parametrize(
    ("variance", "reason"),
    [(0.29, "natural"), (0.3, "natural"), (0.30000000000000004, None), (1.0, None), (0.0, "natural"), (None, None), (float("nan"), None)],
)
def test_the_gate_opens_at_the_threshold(variance: float | None, reason: str | None) -> None:
    assert Variance(threshold=0.3).reason(view(variance=variance), None) == (reason, None)


@pytest.mark.parametrize(("iteration", "reason"), [(0, None), (1, None), (2, "cap"), (3, "cap")])
def test_the_cap_of_three_is_the_third_close(iteration: int, reason: str | None) -> None:
    """iteration + 1 >= max: iteration counts the closes before this one."""
    assert Cap(max=3).reason(view(iteration), None) == (reason, None)


def test_a_cap_of_one_commits_always() -> None:
    assert Cap(max=1).reason(view(0), None)[0] == "cap"


@pytest.mark.parametrize("variance", [None, 0.0, 1e9])
def test_the_goal_commits_whatever_it_sees(variance: float | None) -> None:
    assert AggGoal().reason(view(7, 1, variance), None) == ("goal", None)


@pytest.mark.parametrize(
    ("iteration", "variance", "reason"),
    [(0, 0.1, "natural"), (0, 0.9, KEEP), (2, 0.9, "cap"), (2, 0.1, "natural"), (0, None, KEEP), (2, None, "cap")],
)
def test_the_first_rule_that_commits_gives_the_reason(iteration: int, variance: float | None, reason: str) -> None:
    rules = (Variance(threshold=0.3), Cap(max=3))
    assert first_match(rules, view(iteration, variance=variance), [None, None]) == (reason, [None, None])


def test_the_order_is_the_configurations() -> None:
    assert first_match((Cap(max=1), Variance(threshold=0.3)), view(variance=0.1), [None, None])[0] == "cap"


@dataclass
class Counting:
    """A rule with a state: how many closes it has seen. It commits at the `at`-th."""

    at: int

    def reason(self, view: BinView, state: int) -> tuple[str | None, int]:
        return (f"seen {state + 1}" if state + 1 >= self.at else None), state + 1


def test_every_rule_sees_every_close() -> None:
    """Also those behind the one that commits, else their history would have holes."""
    states: list[Any] = [0, 0]
    reasons = []
    for _ in range(3):
        reason, states = first_match((Counting(2), Counting(3)), view(), states)
        reasons.append(reason)
    assert reasons == [KEEP, "seen 2", "seen 3"]
    assert states == [3, 3]


def test_rules_and_states_go_together() -> None:
    with pytest.raises(ValueError, match="shorter"):
        first_match((AggGoal(), AggGoal()), view(), [None])


def test_no_rule_keeps() -> None:
    assert first_match((), view(), []) == (KEEP, [])


@pytest.mark.parametrize(
    ("rule", "wrong"), [(Variance, {"threshold": 0}), (Variance, {}), (Cap, {"max": 0}), (Cap, {"max": 1.5}), (AggGoal, {"k": 3})]
)
def test_numbers_that_mean_nothing_are_refused(rule: Any, wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        rule(**wrong)
