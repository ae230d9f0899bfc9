"""A patch of floats gives back every bit, and leaves out the bytes that didn't change."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.tensor import Tensor
from flame.learn.patch import patch, patched

WIDTHS = {"bfloat16": 2, "float32": 4, "float64": 8}


@st.composite
def pairs(draw: Any) -> tuple[Tensor, Tensor]:
    """Two tensors of one dtype and size, any bits, many of them equal in their upper bytes."""
    dtype = draw(st.sampled_from(sorted(WIDTHS)))
    size, width = draw(st.integers(0, 21)), WIDTHS[dtype]
    before = draw(st.binary(min_size=size * width, max_size=size * width))
    masks = [draw(st.sampled_from([0, *(256**kept - 1 for kept in range(1, width + 1))])) for _ in range(size)]
    words = [draw(st.integers(0, 256**width - 1)) & mask for mask in masks]
    change = b"".join(word.to_bytes(width, "little") for word in words)
    after = bytes(one ^ other for one, other in zip(before, change, strict=True))
    return Tensor(dtype, (size,), before), Tensor(dtype, (size,), after)


@given(pairs())
def test_a_patch_gives_back_every_bit(pair: tuple[Tensor, Tensor]) -> None:
    before, after = pair
    assert patched(before, patch(before, after)) == after


@given(pairs())
def test_a_patch_is_never_longer_than_the_numbers_and_their_codes(pair: tuple[Tensor, Tensor]) -> None:
    before, after = pair
    parts = patch(before, after)
    assert parts["codes"].nbytes == -(-before.shape[0] // 4)
    assert parts["bytes"].nbytes <= before.nbytes


def f32(*values: float) -> Tensor:
    return Tensor("float32", (len(values),), np.array(values, np.float32).tobytes())


def test_what_stays_the_same_costs_two_bits() -> None:
    before = f32(*range(8))
    assert {name: part.nbytes for name, part in patch(before, before).items()} == {"codes": 2, "bytes": 0}


@pytest.mark.parametrize(("after", "cost"), [(1.0, 0), (1 + 2**-23, 2), (1 + 2**-8, 2), (1 + 2**-7, 3), (1.5, 3), (3.0, 4), (-1.0, 4)])
def test_the_nearer_the_number_the_fewer_bytes(after: float, cost: int) -> None:
    assert patch(f32(1.0), f32(after))["bytes"].nbytes == cost


def test_nan_and_the_sign_of_zero_are_bits_like_others() -> None:
    before, after = f32(0.0, 1.0, float("nan")), f32(-0.0, float("nan"), 2.0)
    assert patched(before, patch(before, after)) == after


def test_tensors_of_two_kinds_have_no_patch() -> None:
    with pytest.raises(ValueError, match="no patch leads"):
        patch(f32(1.0), f32(1.0, 2.0))


def test_a_patch_for_other_weights_is_refused_where_it_shows() -> None:
    parts = patch(f32(1.0, 2.0), f32(1.5, 2.0))
    with pytest.raises(ValueError):
        patched(f32(1.0, 2.0), parts | {"bytes": Tensor("uint8", (5,), bytes(5))})
