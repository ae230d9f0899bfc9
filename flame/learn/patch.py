"""The difference of two vectors of floats, bit for bit, in as few bytes as a look at each number gives.

    word = bits of the number before XOR bits of the number after

Of two numbers that are close, sign, exponent and the first digits agree, so the upper bytes of the word are
zero and needn't be sent (FPC: Burtscher and Ratanaworabhan, IEEE Trans. Comput. 2009, whose prediction is
here the number before). Two bits a number say how many lower bytes are; a number that stayed the same has none.

    codes   uint8 (ceil(p / 4),)  four codes a byte, the first in the lowest bits
    bytes   uint8 (m,)            the lower bytes: of all numbers with code 1, then 2, then 3

A sum in floats would not do: before + (after - before) isn't after.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from flame.core.tensor import ITEM_BYTES, Tensor
from flame.learn.params import array, tensor

Words = NDArray[np.unsignedinteger]

LENGTHS = {2: (0, 1, 2, 2), 4: (0, 2, 3, 4), 8: (0, 6, 7, 8)}
"""Lower bytes that are sent, by code, for numbers of 2, 4 and 8 bytes."""


def patch(before: Tensor, after: Tensor) -> dict[str, Tensor]:
    """What makes `after` of `before`. Raises ValueError where dtype or shape differ."""
    if (before.dtype, before.shape) != (after.dtype, after.shape):
        raise ValueError(f"no patch leads from {before} to {after}")
    words = _words(before) ^ _words(after)
    lengths = LENGTHS[words.itemsize]
    codes = np.zeros(len(words), np.uint8)
    for length in [length for length in lengths[:-1] if length < words.itemsize]:
        codes += words >> words.dtype.type(8 * length) != 0
    lower = words.view(np.uint8).reshape(len(words), words.itemsize)  # little-endian: the lowest byte first
    kept = [lower[codes == code, : lengths[code]].ravel() for code in (1, 2, 3)]
    return {"codes": tensor(_packed(codes)), "bytes": tensor(np.concatenate(kept))}


def patched(before: Tensor, parts: Mapping[str, Tensor]) -> Tensor:
    """`after` of `patch`. Raises ValueError where the parts don't fit `before`."""
    words = _words(before)
    lengths, codes, sent = LENGTHS[words.itemsize], _unpacked(array(parts["codes"]), len(words)), array(parts["bytes"])
    lower = np.zeros((len(words), words.itemsize), np.uint8)
    start = 0
    for code in (1, 2, 3):
        places = np.flatnonzero(codes == code)
        stop = start + len(places) * lengths[code]
        lower[places, : lengths[code]] = sent[start:stop].reshape(len(places), lengths[code])
        start = stop
    if start != len(sent):
        raise ValueError(f"a patch of {len(sent)} bytes, where its codes ask for {start}")
    return Tensor(before.dtype, before.shape, (words ^ lower.view(words.dtype).ravel()).tobytes())


def _words(values: Tensor) -> Words:
    return np.frombuffer(values.data, f"<u{ITEM_BYTES[values.dtype]}")


def _packed(codes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    fours = np.zeros((-(-len(codes) // 4), 4), np.uint8)
    fours.ravel()[: len(codes)] = codes
    packed: NDArray[np.uint8] = np.bitwise_or.reduce(fours << np.array([0, 2, 4, 6], np.uint8), axis=1)
    return packed


def _unpacked(packed: NDArray[np.generic], count: int) -> NDArray[np.uint8]:
    fours = (packed.astype(np.uint8)[:, None] >> np.array([0, 2, 4, 6], np.uint8)) & np.uint8(3)
    return fours.ravel()[:count]
