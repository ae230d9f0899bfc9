"""The server's other steps: against torch.optim, by hand, and what none of them may do."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError

from flame.core.progress import Progress
from flame.policies.server_opt import Adagrad, Adam, Clip, Momentum, Nesterov, ServerOpt, Sgd, StepView, TrustRatio, Yogi

SIZE = 7
ALL = [
    Adagrad(lr=0.1), Adam(lr=0.1), Momentum(lr=0.1), Nesterov(), Sgd(lr=0.1), TrustRatio(), Yogi(lr=0.1),
    Clip(norm=0.5, before=Sgd(lr=0.1)), Clip(norm=0.5, before=Adam(lr=0.1)),
]  # fmt: skip


def aggregates(count: int, seed: int = 3) -> NDArray[np.float64]:
    return np.random.default_rng(seed).normal(size=(count, SIZE))


def walked(policy: Any, gs: NDArray[Any], start: NDArray[Any]) -> list[NDArray[Any]]:
    """theta after each commit."""
    theta, state, path = start, None, []
    for version, g in enumerate(gs):
        theta, state = policy.step(theta, g, StepView(Progress(model_version=version)), state)
        path.append(theta)
    return path


TORCH: list[tuple[Any, Callable[[Any], torch.optim.Optimizer]]] = [
    (Sgd(lr=0.1), lambda p: torch.optim.SGD(p, lr=0.1)),
    (Momentum(lr=0.1), lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9)),
    (Momentum(lr=0.1, beta=0.0), lambda p: torch.optim.SGD(p, lr=0.1)),
    (Nesterov(), lambda p: torch.optim.SGD(p, lr=0.7, momentum=0.9, nesterov=True)),
    (Nesterov(lr=0.1, beta=0.5), lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.5, nesterov=True)),
    (Adam(lr=0.1), lambda p: torch.optim.Adam(p, lr=0.1, betas=(0.9, 0.99), eps=1e-3)),
    (Adam(lr=0.01, beta_1=0.5, beta_2=0.9, tau=0.1), lambda p: torch.optim.Adam(p, lr=0.01, betas=(0.5, 0.9), eps=0.1)),
    (Adagrad(lr=0.1), lambda p: torch.optim.Adagrad(p, lr=0.1, eps=1e-3)),
]


@pytest.mark.parametrize(("policy", "optimizer"), TORCH, ids=lambda each: getattr(each, "type", ""))
def test_it_is_torchs(policy: Any, optimizer: Callable[[Any], torch.optim.Optimizer]) -> None:
    """Over 30 commits, to a few roundings in float64."""
    start, gs = np.linspace(-1, 1, SIZE), aggregates(30)
    theta = torch.nn.Parameter(torch.tensor(start))
    torchs, expected = optimizer([theta]), []
    for g in gs:
        theta.grad = torch.tensor(g)
        torchs.step()
        expected.append(theta.detach().numpy().copy())
    np.testing.assert_allclose(walked(policy, gs, start), expected, rtol=1e-12, atol=1e-12)


def test_yogi_is_algorithm_2_of_fedopt() -> None:
    """Coordinate by coordinate, in plain Python."""
    gs, lr, tau = aggregates(20), 0.1, 1e-3
    expected = []
    for j in range(SIZE):
        x, m, v = 0.0, 0.0, tau**2
        for g in gs[:, j]:
            m = 0.9 * m + 0.1 * g
            v = v - 0.01 * g * g * (1 if v > g * g else -1 if v < g * g else 0)
            x -= lr * m / (v**0.5 + tau)
        expected.append(x)
    np.testing.assert_allclose(walked(Yogi(lr=lr), gs, np.zeros(SIZE))[-1], expected, rtol=1e-12)


@pytest.mark.parametrize(("policy", "first", "limit"), [(Momentum(lr=1.0), 1.0, 10.0), (Nesterov(), 1.33, 7.0), (Sgd(lr=0.3), 0.3, 0.3)])
def test_a_steady_g_moves_theta_by_the_gain(policy: Any, first: float, limit: float) -> None:
    path = np.array([0.0, *(theta[0] for theta in walked(policy, np.ones((300, 1)), np.zeros(1)))])
    steps = path[:-1] - path[1:]
    assert steps[0] == pytest.approx(first)
    assert steps[-1] == pytest.approx(limit)


@pytest.mark.parametrize(
    ("policy", "gain"),
    [
        (Sgd(lr=0.01), "0.01"),
        (Sgd(lr=0.01, decay="round", rounds=30), "0.01, down to 0 over 30 rounds"),
        (Momentum(lr=0.01), "0.01 at first, 0.1 in the limit"),
        (Nesterov(), "1.33 at first, 7 in the limit"),
        (Adam(lr=0.01), "about 0.01 per coordinate, whatever G's length (over 0.001)"),
        (Adagrad(lr=0.01), "about 0.01 / sqrt(t) per coordinate, whatever G's length (over 0.001)"),
        (Yogi(lr=0.01), "about 0.01 per coordinate in the limit, whatever G's length (over 0.001)"),
        (TrustRatio(), "0.02 of ||theta|| (at least 1), whatever G's length"),
        (TrustRatio(rho=0.03, schedule="inverse"), "0.03 / (1 + t/300) of ||theta|| (at least 1), whatever G's length"),
        (TrustRatio(schedule="linear", over=60), "0.02 x (1 - t/60) of ||theta|| (at least 1), whatever G's length"),
        (TrustRatio(cap=0.4), "0.02, at most 0.4 sqrt(nw/p), of ||theta|| (at least 1), whatever G's length"),
        (Clip(norm=2, before=Nesterov()), "1.33 at first, 7 in the limit; ||G|| at most 2"),
    ],
)
def test_the_gain_in_words(policy: Any, gain: str) -> None:
    assert policy.gain == gain


class TestTrustRatio:
    """The step is a share of theta's length, along G."""

    def test_by_hand(self) -> None:
        """||theta|| = 5, ||G|| = 10: 0.1 x 5 along (0.6, 0.8)."""
        moved, state = TrustRatio(rho=0.1).step(np.array([3.0, -4.0]), np.array([6.0, 8.0]), StepView(Progress()), None)
        np.testing.assert_allclose(moved, [2.7, -4.4], rtol=1e-15)
        assert state is None

    @given(st.floats(1e-6, 1e6))
    def test_the_length_of_g_plays_no_part(self, scale: float) -> None:
        theta, g = np.linspace(1, 2, SIZE), aggregates(1)[0]
        plain, scaled = (TrustRatio().step(theta, factor * g, StepView(Progress()), None)[0] for factor in (1.0, scale))
        np.testing.assert_allclose(scaled, plain, rtol=1e-12)
        assert np.linalg.norm(plain - theta) == pytest.approx(0.02 * np.linalg.norm(theta))

    def test_the_floor_lets_a_head_of_zeros_start(self) -> None:
        g = np.array([0.0, 2.0])
        assert TrustRatio().step(np.zeros(2), g, StepView(Progress()), None)[0].tolist() == [0.0, -0.02]
        assert TrustRatio(floor=3.0).step(np.array([1.0, 0.0]), g, StepView(Progress()), None)[0].tolist() == [1.0, -0.06]
        assert TrustRatio(floor=0.0).step(np.zeros(2), g, StepView(Progress()), None)[0].tolist() == [0.0, 0.0]

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_a_zero_g_moves_nothing(self, dtype: type[np.floating]) -> None:
        theta = np.array([1.0, -2.0], dtype)
        moved, _ = TrustRatio().step(theta, np.zeros(2, dtype), StepView(Progress()), None)
        assert moved.tobytes() == theta.tobytes()
        assert moved is not theta

    @pytest.mark.parametrize(
        ("schedule", "commits", "share"),
        [("constant", 900, 1.0), ("linear", 0, 1.0), ("linear", 150, 0.5), ("linear", 400, 0.0), ("inverse", 0, 1.0), ("inverse", 300, 0.5),
         ("inverse", 600, 1 / 3)],
    )  # fmt: skip
    def test_rho_goes_with_the_commits(self, schedule: Any, commits: int, share: float) -> None:
        policy = TrustRatio(rho=0.03, schedule=schedule, over=300)
        assert policy.rho_at(commits) == pytest.approx(0.03 * share)
        moved, _ = policy.step(np.zeros(1), np.ones(1), StepView(Progress(model_version=commits)), None)
        assert moved[0] == pytest.approx(-0.03 * share)

    def test_linear_wants_its_end_to_be_given(self) -> None:
        with pytest.raises(ValidationError, match="give one, such as `over: 600`"):
            TrustRatio(schedule="linear")
        given_one = TrustRatio(schedule="linear", over=300)
        assert TrustRatio.model_validate(given_one.model_dump()) == given_one

    @pytest.mark.parametrize(
        ("uploads", "worth", "share"),
        [(20, 10, 0.04), (5, 10, 0.02), (1, 1, 0.4 * 0.01**0.5 / 10**0.5), (10_000, 10, 0.05), (20, 100_000, 0.05)],
    )
    def test_the_cap_is_what_g_can_know(self, uploads: int, worth: float, share: float) -> None:
        """p = 20 000, so cap sqrt(nw/p) with 0.4 is 0.04 for 20 uploads worth 10 directions; rho = 0.05 binds beyond."""
        size, policy = 20_000, TrustRatio(rho=0.05, cap=0.4)
        if (uploads, worth) == (1, 1):
            size = 1_000
        moved, _ = policy.step(np.zeros(size), np.ones(size), StepView(Progress(), uploads, worth), None)
        assert np.linalg.norm(moved) == pytest.approx(share, rel=1e-12)

    @given(st.integers(1, 50), st.integers(1, 50), st.integers(0, 2000))
    def test_a_cap_only_ever_shortens(self, uploads: int, worth: float, commits: int) -> None:
        view = StepView(Progress(model_version=commits), uploads, worth)
        theta, g = np.linspace(1, 2, SIZE), aggregates(1)[0]
        free, capped = (TrustRatio(rho=0.2, schedule="inverse", cap=cap).step(theta, g, view, None)[0] for cap in (None, 0.1))
        bound = 0.1 * (uploads * worth / SIZE) ** 0.5 * np.linalg.norm(theta)
        expected = min(np.linalg.norm(free - theta), bound)
        assert np.linalg.norm(capped - theta) == pytest.approx(expected, rel=1e-9)


class TestClip:
    """A bound on ||G|| before another step."""

    def test_a_longer_g_is_cut_to_the_bound(self) -> None:
        """||G|| = 5 to 2.5: half of it."""
        moved, _ = Clip(norm=2.5, before=Sgd(lr=1.0)).step(np.zeros(2), np.array([3.0, -4.0]), StepView(Progress()), None)
        assert moved.tolist() == [-1.5, 2.0]

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_what_fits_keeps_its_bits(self, dtype: type[np.floating]) -> None:
        theta, gs = np.linspace(0, 1, SIZE).astype(dtype), aggregates(9).astype(dtype)
        inner = Adam(lr=0.1)
        clipped, plain = (walked(policy, gs, theta) for policy in (Clip(norm=1e9, before=inner), inner))
        assert [one.tobytes() for one in clipped] == [one.tobytes() for one in plain]

    def test_the_state_is_that_of_the_inner_step(self) -> None:
        gs = aggregates(12)
        cut = gs * np.minimum(1, 1.5 / np.linalg.norm(gs, axis=1))[:, None]
        expected = walked(Momentum(lr=0.1), cut, np.zeros(SIZE))
        np.testing.assert_allclose(walked(Clip(norm=1.5, before=Momentum(lr=0.1)), gs, np.zeros(SIZE)), expected, rtol=1e-12)

    def test_a_clip_of_a_clip_is_refused(self) -> None:
        with pytest.raises(ValidationError):
            Clip(norm=1, before=Clip(norm=1, before=Sgd(lr=1)))  # type: ignore[arg-type]


def frozen(value: Any) -> Any:
    """The same with arrays that can't be written to."""
    for array in value if isinstance(value, tuple) else (value,):
        if isinstance(array, np.ndarray):
            array.flags.writeable = False
    return value


@pytest.mark.parametrize("policy", ALL, ids=lambda policy: policy.type)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nothing_is_changed_in_place(policy: Any, dtype: type[np.floating]) -> None:
    """theta, G and the state are read-only here; the model keeps its dtype; the same again gives the same bits."""
    paths = []
    for _ in range(2):
        theta, state, path = frozen(np.linspace(-1, 1, SIZE).astype(dtype)), None, []
        for version, g in enumerate(aggregates(5).astype(dtype)):
            theta, state = (frozen(each) for each in policy.step(theta, frozen(g), StepView(Progress(model_version=version)), state))
            assert theta.dtype == dtype
            path.append(theta.tobytes())
        paths.append(path)
    assert paths[0] == paths[1]


@pytest.mark.parametrize("policy", ALL, ids=lambda policy: policy.type)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_a_g_that_is_not_finite_is_never_swallowed(policy: Any, bad: float) -> None:
    """It ends the run as DIVERGED, which looks at theta after the step."""
    moved, _ = policy.step(np.ones(2), np.array([1.0, bad]), StepView(Progress()), None)
    assert not np.isfinite(moved).all()


@pytest.mark.parametrize("policy", ALL, ids=lambda policy: policy.type)
def test_it_goes_downhill(policy: Any) -> None:
    """On ||theta||^2 / 2, whose gradient is theta."""
    theta, state = np.full(SIZE, 3.0), None
    for version in range(60):
        theta, state = policy.step(theta, theta.copy(), StepView(Progress(model_version=version)), state)
    assert np.linalg.norm(theta) < 0.75 * 3.0 * np.sqrt(SIZE)


@pytest.mark.parametrize(
    ("written", "policy"),
    [
        ("nesterov", Nesterov(lr=0.7, beta=0.9)),
        ("trust_ratio", TrustRatio(rho=0.02, schedule="constant", floor=1.0)),
        ({"type": "adam", "lr": 0.1}, Adam(lr=0.1, beta_1=0.9, beta_2=0.99, tau=1e-3)),
        ({"type": "yogi", "lr": 0.1}, Yogi(lr=0.1, beta_1=0.9, beta_2=0.99, tau=1e-3)),
        ({"type": "adagrad", "lr": 0.1}, Adagrad(lr=0.1, tau=1e-3)),
        ({"type": "clip", "norm": 1, "before": {"type": "momentum", "lr": 0.1}}, Clip(norm=1, before=Momentum(lr=0.1, beta=0.9))),
    ],
)
def test_it_is_written_by_name_or_spelled_out(written: Any, policy: Any) -> None:
    assert TypeAdapter(ServerOpt).validate_python(written) == policy


@pytest.mark.parametrize(
    "wrong",
    [
        {"type": "adam"}, {"type": "momentum", "lr": 1, "beta": 1}, {"type": "nesterov", "lr": 0}, {"type": "trust_ratio", "rho": 0},
        {"type": "trust_ratio", "floor": -1}, {"type": "trust_ratio", "schedule": "cosine"}, {"type": "clip", "norm": 1},
        {"type": "clip", "norm": 0, "before": {"type": "nesterov"}}, {"type": "yogi", "lr": 1, "tau": 0},
        {"type": "adagrad", "lr": 1, "beta_1": 0},
    ],
)  # fmt: skip
def test_numbers_that_mean_nothing_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(ServerOpt).validate_python(wrong)
