"""The server's step: descent by hand, FwdLLM's decay, FedAvg as a special case."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from flame.core.progress import Progress
from flame.learn.params import tensor, weighted_mean
from flame.policies.server_opt import Sgd, StepView

THETA, G = np.array([1.0, -2.0]), np.array([4.0, 0.5])


def test_descent_goes_against_the_aggregate_and_leaves_theta_alone() -> None:
    theta = THETA.copy()
    moved, state = Sgd(lr=0.5).step(theta, G, StepView(Progress()), None)
    assert moved.tolist() == [-1.0, -2.25]
    assert state is None
    assert theta.tolist() == THETA.tolist()


@pytest.mark.parametrize(("lap", "share"), [(0, 1.0), (1, 0.75), (3, 0.25), (4, 0.0), (9, 0.0)])
def test_decay_per_round_is_r_left_over_r(lap: int, share: float) -> None:
    """lr (R - r) / R as FwdLLM's server has it, and never uphill."""
    moved, _ = Sgd(lr=0.5, decay="round", rounds=4).step(THETA, G, StepView(Progress(round=lap)), None)
    assert moved.tolist() == (THETA - 0.5 * share * G).tolist()


def test_without_decay_the_round_plays_no_part() -> None:
    moved, _ = Sgd(lr=0.5).step(THETA, G, StepView(Progress(round=3)), None)
    assert moved.tolist() == (THETA - 0.5 * G).tolist()


def test_r_is_3000_unless_it_is_said() -> None:
    moved, _ = Sgd(lr=1.0, decay="round").step(THETA, G, StepView(Progress(round=750)), None)
    assert moved.tolist() == (THETA - 0.75 * G).tolist()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_dtype_of_theta_stays(dtype: type[np.floating]) -> None:
    moved, _ = Sgd(lr=0.1).step(THETA.astype(dtype), G.astype(dtype), StepView(Progress()), None)
    assert moved.dtype == dtype
    assert moved.tolist() == (THETA.astype(dtype) - dtype(0.1) * G.astype(dtype)).tolist()


VECTORS = st.lists(st.lists(st.integers(-100, 100), min_size=2, max_size=2), min_size=1, max_size=5)


@given(st.lists(st.integers(-100, 100), min_size=2, max_size=2), VECTORS)
def test_lr_1_on_local_deltas_is_fedavg(start: list[int], models: list[list[int]]) -> None:
    """Uploads theta - w_i, lr 1: theta - mean(theta - w_i) = mean(w_i) (AISTATS'17). Whole numbers keep it exact to a rounding."""
    theta = np.array(start, np.float64)
    uploads = [tensor(theta - np.array(model, np.float64)) for model in models]
    moved, _ = Sgd(lr=1.0).step(theta, weighted_mean(uploads, [1.0] * len(models)), StepView(Progress()), None)
    np.testing.assert_allclose(moved, np.mean(models, axis=0), rtol=0, atol=1e-12)


@pytest.mark.parametrize("wrong", [{"lr": 0}, {"lr": -1}, {}, {"lr": 1, "decay": "cosine"}, {"lr": 1, "rounds": 0}])
def test_numbers_that_mean_nothing_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Sgd.model_validate(wrong)
