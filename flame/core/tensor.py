"""A tensor as a value: dtype, shape and bytes, immutable, with a digest that is computed once.

Machines pass tensors and never look inside. Arithmetic lives in `flame.learn.params`, which views
the same bytes as NumPy arrays without a copy.
"""

from hashlib import blake2b
from math import prod

ITEM_BYTES = {"float64": 8, "float32": 4, "bfloat16": 2, "int64": 8, "int32": 4, "uint8": 1, "bool": 1}


class Tensor:
    """An immutable block of numbers.

    dtype: a key of `ITEM_BYTES`. shape: sizes per axis. data: little-endian, C order.
    Raises ValueError when the three don't agree.
    """

    __slots__ = ("_digest", "data", "dtype", "shape")

    def __init__(self, dtype: str, shape: tuple[int, ...], data: bytes | memoryview) -> None:
        if dtype not in ITEM_BYTES:
            raise ValueError(f"tensor dtype `{dtype}` is not one of {', '.join(sorted(ITEM_BYTES))}")
        view = memoryview(data)
        if not view.readonly:
            raise ValueError(f"tensor {dtype}{list(shape)} needs bytes that nobody can change; copy them first")
        if view.nbytes != prod(shape) * ITEM_BYTES[dtype]:
            raise ValueError(f"tensor {dtype}{list(shape)} needs {prod(shape) * ITEM_BYTES[dtype]} bytes, got {view.nbytes}")
        self.dtype, self.shape, self.data = dtype, shape, data
        self._digest: str | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of the data alone."""
        return prod(self.shape) * ITEM_BYTES[self.dtype]

    @property
    def digest(self) -> str:
        """Hex blake2b-128 over dtype, shape and bytes: the name of this tensor among the blobs."""
        if self._digest is None:
            hasher = blake2b(f"{self.dtype}{list(self.shape)}".encode(), digest_size=16)
            hasher.update(self.data)
            self._digest = hasher.hexdigest()
        return self._digest

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tensor) and self.digest == other.digest

    def __hash__(self) -> int:
        return int(self.digest[:15], 16)

    def __reduce__(self) -> tuple[type["Tensor"], tuple[str, tuple[int, ...], bytes]]:
        return Tensor, (self.dtype, self.shape, bytes(self.data))

    def __repr__(self) -> str:
        return f"Tensor({self.dtype}{list(self.shape)} {self.digest[:8]})"
