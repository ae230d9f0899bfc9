"""The precision in which vectors travel. What is computed with is never touched: sums stay in float64, theta in its dtype."""

from typing import Literal

import numpy as np

from flame.core.tensor import Tensor
from flame.learn.bfloat16 import narrowed

WireDtype = Literal["f32", "bf16"]
BFLOAT16_BYTES = 2


def travelling(values: Tensor, wire: WireDtype) -> Tensor:
    """A vector as it goes on the wire: itself, or rounded to bfloat16. Messages hold it so, sent for real or simulated."""
    return values if wire == "f32" else narrowed(values)


def wire_name(dtype: str, wire: WireDtype) -> str:
    """The dtype on the wire of vectors that are computed in `dtype`."""
    return dtype if wire == "f32" else "bfloat16"


def width(dtype: str, wire: WireDtype) -> int:
    """Bytes of one such number."""
    return np.dtype(dtype).itemsize if wire == "f32" else BFLOAT16_BYTES
