"""A tensor is a value: what it is made of, and nothing else, is its identity."""

import pickle
from hashlib import blake2b
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.tensor import ITEM_BYTES, Tensor
from flame.learn.params import array, tensor

VECTOR = Tensor("float64", (2,), b"0123456789abcdef")


def test_the_digest_covers_dtype_shape_and_bytes() -> None:
    expected = blake2b(b"float64[2]" + b"0123456789abcdef", digest_size=16).hexdigest()
    assert VECTOR.digest == expected
    assert VECTOR.digest is VECTOR.digest  # computed once


def test_tensors_that_differ_in_one_thing_are_different() -> None:
    data = b"0123456789abcdef"
    different = [
        Tensor("float64", (2,), data),
        Tensor("int64", (2,), data),
        Tensor("float64", (1, 2), data),
        Tensor("float64", (2, 1), data),
        Tensor("float32", (4,), data),
        Tensor("float64", (2,), data[::-1]),
        Tensor("uint8", (16,), data),
    ]
    for one, other in combinations(different, 2):
        assert one != other
        assert one.digest != other.digest
    assert len(set(different)) == len(different)


def test_equal_content_is_equal_whatever_holds_it() -> None:
    other = Tensor("float64", (2,), memoryview(b"0123456789abcdef"))
    assert other == VECTOR
    assert hash(other) == hash(VECTOR)
    assert other.digest == VECTOR.digest


def test_a_tensor_equals_only_tensors() -> None:
    assert [other for other in (VECTOR.digest, None, 0) if other == VECTOR] == []


def test_each_dtype_counts_its_own_bytes() -> None:
    sizes = {"float64": 8, "float32": 4, "bfloat16": 2, "int64": 8, "int32": 4, "uint8": 1, "bool": 1}
    assert sizes == ITEM_BYTES
    for dtype, size in sizes.items():
        assert Tensor(dtype, (3, 2), bytes(6 * size)).nbytes == 6 * size


def test_a_scalar_and_an_empty_tensor_are_tensors() -> None:
    assert Tensor("float32", (), b"1234").nbytes == 4
    assert Tensor("float32", (0, 3), b"").nbytes == 0


@pytest.mark.parametrize("data", [b"", b"1234567", b"123456789"])
def test_bytes_that_do_not_fill_the_shape_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=rf"float64\[1\] needs 8 bytes, got {len(data)}"):
        Tensor("float64", (1,), data)


@pytest.mark.parametrize("data", [bytearray(8), memoryview(bytearray(8))])
def test_bytes_that_somebody_could_change_are_refused(data: memoryview) -> None:
    with pytest.raises(ValueError, match="nobody can change"):
        Tensor("float64", (1,), data)


def test_an_unknown_dtype_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="`float16` is not one of bfloat16, bool, float32"):
        Tensor("float16", (1,), b"12")


def test_no_attribute_can_be_added() -> None:
    with pytest.raises(AttributeError):
        VECTOR.name = "theta"  # type: ignore[attr-defined]


def test_the_array_of_a_tensor_is_read_only_and_shares_its_bytes() -> None:
    view = array(VECTOR)
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 1.0
    assert view.tobytes() == VECTOR.data
    with pytest.raises(ValueError, match=r"WRITEABLE|writeable"):
        view.flags.writeable = True


def test_a_tensor_does_not_follow_the_array_that_it_was_made_of() -> None:
    values = np.zeros(2)
    made = tensor(values)
    values[0] = 1.0
    assert array(made)[0] == 0.0


def test_it_travels_by_pickle_between_processes_of_one_run() -> None:
    view = Tensor("float64", (2,), memoryview(b"0123456789abcdef"))
    again = pickle.loads(pickle.dumps(view))
    assert again == VECTOR
    assert type(again.data) is bytes


def test_its_text_names_dtype_shape_and_the_start_of_the_digest() -> None:
    assert repr(VECTOR) == f"Tensor(float64[2] {VECTOR.digest[:8]})"


@given(st.lists(st.floats(allow_nan=True, width=64), max_size=8))
def test_bits_survive_the_way_through_an_array(values: list[float]) -> None:
    made = tensor(np.array(values, np.float64))
    assert tensor(array(made)) == made
    assert made.nbytes == 8 * len(values)
