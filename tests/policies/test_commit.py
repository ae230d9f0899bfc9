"""Commit rules, by hand: the gate, the cap, the goal, and how they are composed."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from pydantic import ValidationError

from flame.learn.params import half_variance, mean_square, tensor
from flame.policies.commit import KEEP, AggGoal, BinView, Cap, NEff, Plateau, PoolSize, Variance, first_match


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


def closes(rule: Plateau, variances: list[float | None], first: int = 0) -> list[str | None]:
    """The reasons at consecutive closes of one bin."""
    state, reasons = None, []
    for iteration, variance in enumerate(variances, start=first):
        reason, state = rule.reason(view(iteration, variance=variance), state)
        reasons.append(reason)
    return reasons


class TestPlateau:
    """V has stopped falling: by hand, and against a plain loop."""

    def test_it_needs_patience_plus_1_values(self) -> None:
        assert closes(Plateau(), [1.0, 1.0, 1.0, 1.0]) == [None, None, None, "plateau"]
        assert closes(Plateau(patience=1), [1.0, 1.0]) == [None, "plateau"]

    @pytest.mark.parametrize(("last", "reason"), [(0.851, "plateau"), (0.86, "plateau"), (0.849, None), (0.5, None), (2.0, "plateau")])
    def test_a_drop_of_15_percent_over_three_closes_goes_on(self, last: float, reason: str | None) -> None:
        """(V[-4] - V[-1]) / V[-4] < 0.15; what lies between doesn't count, and a rise is less than any drop."""
        assert closes(Plateau(), [1.0, 9.0, 0.1, last])[-1] == reason

    def test_the_drop_of_exactly_eps_is_not_less(self) -> None:
        assert closes(Plateau(eps=0.25), [1.0, 1.0, 1.0, 0.75])[-1] is None

    @pytest.mark.parametrize("baseline", [0.0, float("nan")])
    def test_it_needs_a_positive_baseline(self, baseline: float) -> None:
        assert closes(Plateau(), [baseline, 1.0, 1.0, 0.9]) == [None] * 4

    def test_an_undefined_v_is_no_value(self) -> None:
        assert closes(Plateau(), [None, 1.0, 1.0, 1.0, 1.0]) == [None, None, None, None, "plateau"]

    def test_the_history_restarts_at_each_commit_whoever_committed(self) -> None:
        """The first close of a bin has iteration 0, so a commit by another rule is seen too."""
        rule, state = Plateau(patience=2), (5.0, 5.0)
        reason, state = rule.reason(view(0, variance=5.0), state)
        assert (reason, state) == (None, (5.0,))

    def test_the_history_is_as_long_as_it_must_be(self) -> None:
        state: Any = None
        for iteration in range(9):
            _, state = Plateau().reason(view(iteration, variance=10.0 - iteration), state)
        assert state == (5.0, 4.0, 3.0, 2.0)

    @given(st.lists(st.floats(0.01, 10), max_size=12), st.integers(1, 4), st.floats(0.01, 0.9))
    def test_it_is_the_formula(self, variances: list[float], patience: int, eps: float) -> None:
        expected = []
        for i, v in enumerate(variances):
            base = variances[i - patience] if i >= patience else None
            expected.append("plateau" if base is not None and (base - v) / base < eps else None)
        assert closes(Plateau(patience=patience, eps=eps), variances) == expected

    def test_independent_uploads_drop_by_3_over_i_so_it_fires_at_close_20(self) -> None:
        """V ~ 1/i: (1/(i-3) - 1/i) (i-3) = 3/i, under 0.15 from i = 21 on (3/20 rounds to just about 0.15)."""
        fired = closes(Plateau(), [1 / i for i in range(1, 30)]).index("plateau") + 1
        assert fired in (20, 21)

    def test_behind_the_gate_it_fires_above_the_threshold_only(self) -> None:
        rules = (Variance(threshold=0.3), Plateau(patience=1), Cap(max=3))
        states: list[Any] = [None] * 3
        reasons = []
        for iteration, variance in [(0, 0.9), (1, 0.85), (0, 0.2), (0, 0.9), (1, 0.29), (0, 9.0), (1, 5.0), (2, 2.0)]:
            reason, states = first_match(rules, view(iteration, variance=variance), states)
            reasons.append(reason)
        assert reasons == [KEEP, "plateau", "natural", KEEP, "natural", KEEP, KEEP, "cap"]


@pytest.mark.parametrize(("uploads", "reason"), [(19, None), (20, "pool_size"), (30, "pool_size")])
def test_the_pool_size_counts_uploads(uploads: int, reason: str | None) -> None:
    assert PoolSize(n=20).reason(view(0, uploads, None), None) == (reason, None)


@pytest.mark.parametrize(
    ("mean_square", "variance", "reason"),
    [
        (1.0, 0.1, "n_eff"),
        (1.0, 0.1001, None),
        (0.5, 0.05, "n_eff"),
        (None, 0.1, None),
        (1.0, None, None),
        (0.0, 0.0, None),
        (1.0, 0.0, "n_eff"),
        (1.0, float("nan"), None),
    ],
)
def test_n_eff_is_2_mean_squares_over_v(mean_square: float | None, variance: float | None, reason: str | None) -> None:
    seen = BinView(0, 40, variance, mean_square)
    assert NEff(n=20).reason(seen, None) == (reason, None)
    expected = 2 * mean_square / variance if mean_square is not None and variance else None
    assert seen.n_eff == pytest.approx(expected, nan_ok=True)


def effective(uploads: NDArray[np.float64]) -> float:
    sent = [tensor(upload) for upload in uploads]
    value = BinView(0, len(sent), half_variance(sent), mean_square(sent)).n_eff
    assert value is not None
    return value


def test_n_eff_of_independent_uploads_is_n_and_duplicates_halve_it() -> None:
    """Each upload twice, side by side: as many uploads, half of them worth nothing (algorithms.md, section 11)."""
    rng = np.random.default_rng(4)
    alone = [effective(rng.normal(size=(40, 500))) for _ in range(100)]
    twice = [effective(np.repeat(rng.normal(size=(20, 500)), 2, axis=0)) for _ in range(100)]
    assert np.mean(alone) == pytest.approx(40, rel=0.02)
    assert np.mean(twice) == pytest.approx(20, rel=0.02)


def test_n_eff_has_no_scale() -> None:
    uploads = np.random.default_rng(5).normal(size=(12, 30))
    assert effective(1000 * uploads) == pytest.approx(effective(uploads))


@pytest.mark.parametrize(
    ("rule", "wrong"),
    [(Plateau, {"patience": 0}), (Plateau, {"eps": 0}), (Plateau, {"eps": 1}), (PoolSize, {}), (PoolSize, {"n": 0}), (NEff, {"n": 0})],
)
def test_numbers_of_the_newer_rules_that_mean_nothing_are_refused(rule: Any, wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        rule(**wrong)
