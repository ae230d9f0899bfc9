"""bfloat16 against torch's, bit for bit."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from flame.core.tensor import Tensor
from flame.learn.bfloat16 import narrowed, widened
from flame.learn.params import array, tensor, vector


def bits(values: Tensor) -> list[int]:
    return array(values).tolist()


def of_torch(values: np.ndarray) -> list[int]:
    return torch.tensor(values).to(torch.bfloat16).view(torch.uint16).tolist()


@given(arrays(np.uint32, st.integers(1, 40)))
def test_any_float32_is_rounded_as_torch_does(words: np.ndarray) -> None:
    values = words.view(np.float32)
    values = values[~np.isnan(values)]
    assert bits(narrowed(tensor(values))) == of_torch(values)


@given(arrays(np.float64, st.integers(1, 40), elements=st.floats(allow_nan=False)))
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
def test_any_float64_is_rounded_as_torch_does(values: np.ndarray) -> None:
    assert bits(narrowed(tensor(values))) == of_torch(values)


@pytest.mark.parametrize(("value", "expected"), [
    (1 + 2**-8, 1.0), (1 + 3 * 2**-8, 1 + 2**-6), (1 + 2**-8 + 2**-20, 1 + 2**-7), (-1 - 2**-8, -1.0),
    (3.4e38, np.inf), (2.0**-133, 2.0**-133), (2.0**-135, 0.0),
])  # fmt: skip
def test_ties_go_to_even_and_the_ends_are_kept(value: float, expected: float) -> None:
    assert vector(widened(narrowed(tensor(np.array([value], np.float32))), "float64")).tolist() == [expected]


@pytest.mark.parametrize("word", [0x7F800001, 0x7FFFFFFF, 0xFFFFFFFF, 0xFFC00000, 0x7F80FFFF])
def test_what_is_no_number_stays_none(word: int) -> None:
    values = np.array([word], np.uint32).view(np.float32)
    assert bits(narrowed(tensor(values))) == [0x7FC0]
    assert np.isnan(vector(widened(narrowed(tensor(values)), "float32"))).all()


@given(arrays(np.uint16, st.integers(1, 40)), st.sampled_from(["float32", "float64"]))
def test_what_was_rounded_once_comes_back_as_itself(halves: np.ndarray, dtype: str) -> None:
    values = Tensor("bfloat16", halves.shape, halves.tobytes())
    wide = widened(values, dtype)
    assert (wide.dtype, wide.shape) == (dtype, values.shape)
    there = narrowed(wide)
    known = ~np.isnan(vector(wide))
    assert array(there)[known].tolist() == array(values)[known].tolist()
    assert widened(there, dtype) == wide or not known.all()


def test_other_dtypes_are_left_alone() -> None:
    values = tensor(np.array([1.0, 2.0]))
    assert widened(values, "float32") is values
