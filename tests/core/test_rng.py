"""Derived randomness: a function of seed and path, with nothing lost in the framing."""

from hashlib import blake2b
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.rng import derive

PART = st.one_of(st.integers(-3, 12), st.text("0123;:is-", max_size=4))
PATH = st.lists(PART, max_size=3).map(tuple)
SEED = st.integers(0, 3)


@pytest.mark.parametrize(
    ("seed", "path", "number"),
    [
        (0, (), 0x9D99CCDEF36AE188),
        (1, ("perturb", "t0", 0, 0, 0), 0x28221C4671981617),
        (1, ("perturb", "t1", 0, 0, 0), 0x9EF2AB56803299F0),
        (7, ("select", 12, "t003"), 0x5101EBC1CA5A6D48),
        (2**63, ("é",), 0xB8CB89D96B355987),
    ],
)
def test_known_values_never_change(seed: int, path: tuple[int | str, ...], number: int) -> None:
    """Stored runs and pairs on two hosts stand on these numbers."""
    assert derive(seed, *path) == number


def test_it_is_blake2b_over_framed_text() -> None:
    digest = blake2b(b"5;i3;s2:ab;s0:;i-1", digest_size=8).digest()
    assert derive(5, 3, "ab", "", -1) == int.from_bytes(digest, "big")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((0, "a", "bc"), (0, "ab", "c")),
        ((0, 1), (0, "1")),
        ((0, "1"), (0, "i1")),
        ((0, "a;s1:b"), (0, "a", "b")),
        ((0, 1, 2), (0, "1;i2")),
        ((0,), (0, "")),
        ((0, 0), (0,)),
        ((1, 2), (12,)),
        ((1, "x"), (2, "x")),
        ((0, "x", "y"), (0, "y", "x")),
        ((0, 11), (0, 1, 1)),
    ],
)
def test_different_paths_give_different_numbers(one: tuple[Any, ...], other: tuple[Any, ...]) -> None:
    assert derive(one[0], *one[1:]) != derive(other[0], *other[1:])


@given(SEED, PATH, SEED, PATH)
def test_numbers_are_equal_only_if_seed_and_path_are(
    seed: int, path: tuple[int | str, ...], other: int, another: tuple[int | str, ...]
) -> None:
    assert (derive(seed, *path) == derive(other, *another)) == ((seed, path) == (other, another))


def test_a_small_space_has_no_collision() -> None:
    numbers = {
        derive(seed, "perturb", f"t{node}", version, n)
        for seed in range(3)
        for node in range(10)
        for version in range(20)
        for n in range(20)
    }
    assert len(numbers) == 3 * 10 * 20 * 20


@given(SEED, PATH)
def test_a_number_has_64_bits(seed: int, path: tuple[int | str, ...]) -> None:
    assert 0 <= derive(seed, *path) < 2**64


def test_every_bit_is_used() -> None:
    numbers = [derive(1, "bits", n) for n in range(200)]
    for bit in range(64):
        assert 60 < sum(number >> bit & 1 for number in numbers) < 140
