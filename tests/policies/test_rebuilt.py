"""What is rebuilt from seed, scalars and choice has the bits of what was made of the probes."""

import re
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.config.condition import Condition
from flame.core.messages import Payload
from flame.core.rng import derive, perturbation
from flame.core.tasks import Gradient, GradientResult
from flame.core.tensor import Tensor
from flame.learn.estimators import local_step
from flame.learn.params import Layout, Vector, array, tensor, vector
from flame.policies.payload import UP, Terms
from flame.policies.perturb import BestOf, Guided, MeanOf, PerturbRule, Single, Split
from flame.policies.perturb.combined import seed_of

RULES: list[Any] = [
    Single(), Single(distribution="sphere"), MeanOf(probes=1), MeanOf(probes=10), MeanOf(probes=3, distribution="rademacher"),
    BestOf(probes=10), BestOf(probes=10, coin=True), BestOf(probes=7, distribution="rademacher"), Guided(), Guided(candidates=3),
    Split(shares=2), Split(shares=3, of=MeanOf(probes=3)), Split(shares=2, of=BestOf(probes=4)), Split(shares=2, of=Guided(candidates=3)),
]  # fmt: skip
SHAPES = ((3, 5), (5,), (2,))
KEY = (1, "t0", 0, 0, 0, 6)
"""Of an assign, by its six parts; of two shares it has the first, of two tensors."""


class Bowl:
    """The losses of two samples, w_i (theta . theta) / 2, in theta's dtype; slopes in closed form."""

    def losses(self, theta: Vector) -> Vector:
        return (np.array([1.0, 1.5]) * float(np.add.reduce(theta.astype(np.float64) ** 2)) / 2).astype(theta.dtype)

    def jvp(self, theta: Vector, probes: np.ndarray) -> tuple[Vector, Vector]:
        along = np.add.reduce(probes * theta.astype(np.float64), axis=1)
        return self.losses(theta), (along[:, None] * np.array([1.0, 1.5])).astype(theta.dtype)

    def gradient(self, theta: Vector) -> tuple[Vector, Vector]:
        return self.losses(theta), 1.25 * theta


def stepped(rule: PerturbRule, seed: int, dtype: str, up: str, towards: bool) -> tuple[GradientResult, Layout]:
    layout = Layout(("a", "b", "c"), SHAPES, dtype)
    draw = np.random.default_rng(derive(seed, "theta"))
    theta, u = (tensor(draw.standard_normal(layout.size).astype(dtype)) for _ in range(2))
    plain = {"stop": {"cycles": 1}, "payload": {"up": up}, "perturb": rule.model_dump()}  # type: ignore[attr-defined]
    task = Gradient("t0", 1, 1, seed, theta, u if towards else None)
    return local_step(Condition.model_validate(plain), layout, Bowl(), task), layout


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("rule", RULES, ids=str)
@given(seed=st.integers(0, 2**64 - 1), towards=st.booleans())
def test_the_aggregator_rebuilds_the_trainers_bits(rule: Any, dtype: str, seed: int, towards: bool) -> None:
    key = (seed, "t0", 1, 1)
    result, layout = stepped(rule, seed_of(rule, (*key, 0, 7)), dtype, "seeds", towards)
    terms = Terms(rule, layout, "f32")
    payload = UP["seeds"].packed(result, "f32")
    assert UP["seeds"].fault(payload, (*key, 0, 7), terms) is None
    assert UP["seeds"].delta(payload, (*key, 0, 7), terms) == result.delta
    assert UP["seeds"].delta(payload, (*key, 1, 7), terms) != result.delta


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_the_upload_is_the_same_whichever_way_it_goes(rule: Any) -> None:
    dense, seeds = (stepped(rule, 77, "float32", up, True)[0] for up in ("dense", "seeds"))
    assert (dense.scalars, dense.choice) == (None, None)
    assert (dense.delta, dense.loss, dense.derivative) == (seeds.delta, seeds.loss, seeds.derivative)


@pytest.mark.parametrize(("rule", "count"), [(Single(), 4), (MeanOf(probes=10), 40), (BestOf(), 5), (Guided(), 4 + 3)])
def test_bytes_of_scalars_and_choice(rule: Any, count: int) -> None:
    """Of 40 and 5 plus the 8 of a seed the design makes 48 and 13; here the seed follows from the assign."""
    payload = UP["seeds"].packed(stepped(rule, 5, "float32", "seeds", True)[0], "f32")
    assert sum(part.nbytes for part in payload.tensors.values()) == count


def test_the_choice_of_best_of_is_the_steepest_probe() -> None:
    result, layout = stepped(BestOf(probes=10), 9, "float64", "seeds", False)
    assert result.choice is not None
    (chosen,) = array(result.choice).tolist()
    theta = np.random.default_rng(derive(9, "theta")).standard_normal(layout.size)
    assert chosen == int(np.argmax(np.abs(BestOf(probes=10).draw(9, layout, None) @ theta)))


def test_the_seed_of_an_assign_is_its_own() -> None:
    seeds = {perturbation(1, *parts) for parts in product(("t0", "t1"), (0, 1), (0, 1), (0, 1))}
    assert len(seeds) == 16
    assert perturbation(1, "t7", 2, 3, 4) == derive(1, "perturb", "t7", 2, 3, 4)
    assert seed_of(Single(), (1, "t7", 2, 3, 4, 9)) == perturbation(1, "t7", 2, 3, 4)
    assert seed_of(Split(shares=4), (1, "t7", 2, 3, 4, 9)) == Split(shares=4).dealt(perturbation(1, "t7", 2, 3, 4), 9)


def scalars(*values: float, dtype: str = "float32") -> Tensor:
    return tensor(np.array(values, dtype))


def choice(*values: int) -> Tensor:
    return tensor(np.array(values, np.uint8))


@pytest.mark.parametrize(
    ("rule", "tensors", "why"),
    [
        (Single(), {}, r"is of `seeds` with \[\], where `seeds` with \['scalars'\] was asked for"),
        (Single(), {"scalars": scalars(1.0), "more": scalars(1.0)}, r"with \['more', 'scalars'\], where"),
        (Single(), {"scalars": scalars(1.0), "choice": choice()}, r"with \['choice', 'scalars'\], where"),
        (Split(shares=2, of=Guided()), {"scalars": scalars(1.0), "choice": choice(0)}, r"the choice \[0\]"),
        (Single(), {"scalars": scalars(1.0, dtype="float64")}, "as its scalars, for a theta of float32"),
        (Single(), {"scalars": tensor(np.ones((1, 1), np.float32))}, "as its scalars"),
        (Single(), {"scalars": scalars(1.0, 2.0)}, "brings 2 scalars"),
        (Single(), {"scalars": scalars(1.0), "choice": choice(0)}, r"with \['choice', 'scalars'\], where"),
        (MeanOf(probes=3), {"scalars": scalars(1.0)}, "brings 1 scalars"),
        (BestOf(probes=3), {"scalars": scalars(1.0)}, r"with \['scalars'\], where `seeds` with \['choice', 'scalars'\]"),
        (BestOf(probes=3), {"scalars": scalars(1.0), "choice": choice()}, r"the choice \[\]"),
        (BestOf(probes=3), {"scalars": scalars(1.0), "choice": choice(3)}, r"the choice \[3\]"),
        (BestOf(probes=3), {"scalars": scalars(1.0), "choice": tensor(np.array([1], np.int32))}, "as its choice, which is of uint8"),
        (Guided(candidates=3), {"scalars": scalars(1.0), "choice": choice(0, 2)}, r"the choice \[0, 2\]"),
        (Guided(candidates=3), {"scalars": scalars(1.0), "choice": choice(0, 2, 3)}, r"the choice \[0, 2, 3\]"),
    ],
)
def test_what_no_trainer_of_this_condition_sends_is_a_fault(rule: Any, tensors: dict[str, Tensor], why: str) -> None:
    fault = UP["seeds"].fault(Payload("seeds", tensors), KEY, Terms(rule, Layout(("a", "b", "c"), SHAPES), "f32"))
    assert fault is not None
    assert re.search(why, fault)


def test_an_upload_must_fit_the_share_of_its_own_assign() -> None:
    """Of two shares the first has two tensors, the other one: a choice for one tensor fits assign 7, not 6."""
    terms = Terms(Split(shares=2, of=Guided()), Layout(("a", "b", "c"), SHAPES), "f32")
    sent = {count: Payload("seeds", {"scalars": scalars(1.0), "choice": choice(*range(count))}) for count in (1, 2)}
    fits = {(count, turn): UP["seeds"].fault(sent[count], (*KEY[:5], turn), terms) is None for count in (1, 2) for turn in (6, 7)}
    assert fits == {(1, 6): False, (1, 7): True, (2, 6): True, (2, 7): False}


@pytest.mark.parametrize("up", ["dense", "seeds"])
def test_another_kind_or_more_tensors_are_a_fault(up: str) -> None:
    rule, layout = Single(), Layout(("w",), ((2,),))
    terms, one = Terms(rule, layout, "f32"), {"dense": {"delta": scalars(1.0, 2.0)}, "seeds": {"scalars": scalars(1.0)}}[up]
    assert UP[up].fault(Payload(up, one), KEY, terms) is None
    for wrong in (Payload("other", one), Payload(up, one | {"more": scalars(1.0)}), Payload(up, {})):
        assert "was asked for" in str(UP[up].fault(wrong, KEY, terms))


def test_keys_have_six_parts() -> None:
    """Both ends derive an assign's seed from (run's seed, node, version, bin, draw, id), and of nothing less."""
    assert len(KEY) == 6
    for rule in RULES:
        for short in (KEY[:5], (*KEY, 1)):
            with pytest.raises(ValueError, match="values to unpack"):
                seed_of(rule, short)  # type: ignore[arg-type]


def test_a_result_without_scalars_can_not_be_sent_as_seeds() -> None:
    with pytest.raises(ValueError, match="has none"):
        UP["seeds"].packed(GradientResult(scalars(1.0), 0.0, 0.0, 1, 1, 1), "f32")


def test_dense_travels_rounded_where_it_shall() -> None:
    terms = Terms(Single(), Layout(("w",), ((2,),)), "bf16")
    result = GradientResult(scalars(1.0, 1 + 2**-9), 0.0, 0.0, 1, 1, 1)
    payload = UP["dense"].packed(result, "bf16")
    assert payload.tensors["delta"].dtype == "bfloat16"
    assert UP["dense"].fault(payload, KEY, terms) is None
    assert vector(UP["dense"].delta(payload, KEY, terms)).tolist() == [1.0, 1.0]
    assert UP["dense"].delta(payload, KEY, terms).dtype == "float32"
    assert "for a theta of bfloat16[2]" in str(UP["dense"].fault(Payload("dense", {"delta": result.delta}), KEY, terms))
