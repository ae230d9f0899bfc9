"""bfloat16 for NumPy, which has none: the upper half of a float32, rounded to the nearest, ties to even.

    float32   s eeeeeeee mmmmmmm mmmmmmmmmmmmmmmm
    bfloat16  s eeeeeeee mmmmmmm                    8 bits of precision, float32's range

A float64 is rounded to float32 before (as torch does). Widening is exact, so a number that was rounded once
comes back as itself. Every NaN becomes the one quiet NaN; what rounds past the largest number is infinite.
"""

import numpy as np

from flame.core.tensor import Tensor
from flame.learn.params import tensor, vector

_NAN = np.uint32(0x7FC0)


def narrowed(values: Tensor) -> Tensor:
    """The same numbers as bfloat16, rounded; float32 or float64 in."""
    with np.errstate(over="ignore"):
        single = np.ascontiguousarray(vector(values), np.float32)
    bits = single.view(np.uint32)
    upper = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    halves = np.where(np.isnan(single), _NAN, upper).astype(np.uint16)
    return Tensor("bfloat16", values.shape, halves.tobytes())


def widened(values: Tensor, dtype: str) -> Tensor:
    """bfloat16 in `dtype`, exactly; anything else as it is."""
    if values.dtype != "bfloat16":
        return values
    halves = np.frombuffer(values.data, np.uint16).reshape(values.shape)
    return tensor((halves.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(dtype))
