"""Parameters as one flat vector, and the arithmetic that decides: means, the gate's V, digests.

Everything here is NumPy, one thread, in a fixed order, so the bits are a function of the inputs:
reductions over uploads run in the order given (canonical: stamp, node), accumulate in float64 and
are rounded once to the dtype of the parameters. Arrays that come out of a Tensor are read-only.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import isfinite, prod
from typing import Self

import numpy as np
from numpy.typing import NDArray

from flame.core.tensor import Tensor

Vector = NDArray[np.floating]


@dataclass(frozen=True, slots=True)
class Layout:
    """Names and shapes of the trainable tensors, in the order in which theta (p,) holds them, and theta's dtype."""

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    dtype: str = "float32"

    @classmethod
    def whole(cls, theta: Tensor) -> Self:
        """Of a theta that is one tensor."""
        return cls(("theta",), (theta.shape,), theta.dtype)

    @property
    def size(self) -> int:
        """p, the number of trainable parameters."""
        return sum(prod(shape) for shape in self.shapes)

    def slices(self) -> Iterator[tuple[str, slice, tuple[int, ...]]]:
        """Each tensor's name, its place in theta and its shape."""
        start = 0
        for name, shape in zip(self.names, self.shapes, strict=True):
            stop = start + prod(shape)
            yield name, slice(start, stop), shape
            start = stop


def array(tensor: Tensor) -> NDArray[np.generic]:
    """A read-only view of the tensor's bytes, without a copy; of bfloat16, which NumPy doesn't have, as its bits."""
    dtype = "uint16" if tensor.dtype == "bfloat16" else tensor.dtype
    return np.frombuffer(tensor.data, dtype=dtype).reshape(tensor.shape)


def vector(tensor: Tensor) -> Vector:
    """The same, as a floating vector (p,)."""
    return array(tensor)  # type: ignore[return-value]


def tensor(values: NDArray[np.generic]) -> Tensor:
    """An immutable Tensor of `values` (copied)."""
    values = np.ascontiguousarray(values)
    return Tensor(str(values.dtype), values.shape, values.tobytes())


def weighted_mean(uploads: Sequence[Tensor], rates: Sequence[float]) -> Vector:
    """G = sum(rate x upload) / n with n the number of uploads, in their order (algorithms.md, section 4).

    Accumulates in float64; the result has the uploads' dtype. Raises ValueError for no uploads.
    """
    if not uploads:
        raise ValueError("the mean of no uploads is undefined")
    total = np.zeros(uploads[0].shape, np.float64)
    for upload, rate in zip(uploads, rates, strict=True):
        total += rate * vector(upload).astype(np.float64)
    return (total / len(uploads)).astype(uploads[0].dtype)


def total(uploads: Iterable[Tensor]) -> Tensor | None:
    """The unweighted sum of the uploads in their order (u, the guided direction); None for none."""
    uploads = list(uploads)
    if not uploads:
        return None
    out = np.zeros(uploads[0].shape, np.float64)
    for upload in uploads:
        out += vector(upload)
    return tensor(out.astype(uploads[0].dtype))


def half_variance(uploads: Sequence[Tensor]) -> float | None:
    """The gate's V = ||A - B||^2 / (2 m): A the mean of the first floor(n/2) uploads, B of the rest.

    m counts the coordinates. None for n < 2 (FwdLLM, USENIX ATC'24; algorithms.md, section 3).
    """
    half = len(uploads) // 2
    if half == 0:
        return None
    first, rest = _mean(uploads[:half]), _mean(uploads[half:])
    gap = first - rest
    return float(np.add.reduce(gap * gap) / (2 * gap.size))


def mean_square(uploads: Sequence[Tensor]) -> float | None:
    """Mean over the uploads of ||u||^2 / m, m counting the coordinates; None for n < 1 (algorithms.md, section 3)."""
    if not uploads:
        return None
    return sum(norm(vector(upload)) ** 2 / prod(upload.shape) for upload in uploads) / len(uploads)


def _mean(uploads: Sequence[Tensor]) -> NDArray[np.float64]:
    total = np.zeros(uploads[0].shape, np.float64)
    for upload in uploads:
        total += vector(upload)
    return total / len(uploads)


def norm(values: Vector) -> float:
    """Euclidean norm, summed in float64."""
    wide = values.astype(np.float64)
    return float(np.sqrt(np.add.reduce(wide * wide)))


def finite(values: Vector) -> bool:
    """No NaN and no infinity. A finite sum proves it at once: either of them would be left in the sum."""
    return isfinite(np.add.reduce(values)) or bool(np.isfinite(values).all())
