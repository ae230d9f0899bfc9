"""Tensors of a run, stored once each under their digest.

Writers of several processes share the folder: a blob is written aside and renamed, so a reader sees
all of it or nothing, and who comes second finds it there.
"""

import os
from pathlib import Path

import numpy as np

from flame.core.tensor import Tensor
from flame.learn.params import array, tensor


class Blobs:
    """A content-addressed folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: set[str] = set()

    def put(self, value: Tensor) -> str:
        """Store `value` unless it is there. Returns its digest."""
        digest = value.digest
        if digest not in self._known:
            self._known.add(digest)
            path = self._path(digest)
            if not path.exists():
                self._write(path, value)
        return digest

    def get(self, digest: str) -> Tensor:
        """The tensor of that digest. Raises FileNotFoundError, or ValueError when the content is another's."""
        stored = np.load(self._path(digest), allow_pickle=False)
        value = Tensor("bfloat16", stored.shape, stored.tobytes()) if stored.dtype == np.uint16 else tensor(stored)
        if value.digest != digest:
            raise ValueError(f"blob {digest} holds {value.digest}: the file was changed")
        return value

    def _path(self, digest: str) -> Path:
        return self._folder / digest[:2] / f"{digest}.npy"

    @staticmethod
    def _write(path: Path, value: Tensor) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        aside = path.with_suffix(f".{os.getpid()}")
        with aside.open("wb") as file:
            np.save(file, array(value), allow_pickle=False)
        aside.replace(path)
