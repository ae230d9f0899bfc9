"""The prefix cache: activations below the first trainable parameter, computed once and kept on disk.

They are frozen, so they are a function of (weights, texts, cut, tokens, batch). One batch is one array
file, named by the digest of its rows, in a folder named by the digest of everything else that can move
a bit: weights, data, cut, token count, torch version, the processor's vector instructions. Files are
written whole or not at all and mapped read-only, so that processes share them without a lock, and two
that compute the same batch write the same bytes. A batch is always computed with the rows it is used
with: the bits of a row depend on the shape of its batch.

With the cache off, what is computed is the same and isn't kept: the bits are equal.
"""

import json
import platform
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flame.learn.data.columnar import save

Rows = NDArray[np.int64]
Compute = Callable[[Rows], NDArray[Any]]
SPARE_BYTES = 1 << 30
"""Disk space that warming leaves free."""


class PrefixCache:
    """Batches of activations by their rows. hits, misses: batches read, and computed, since construction.

    note: why it can't run, or None; once it is set, nothing is read or kept any more.
    """

    def __init__(self, parent: Path, key: Mapping[str, str], compute: Compute, note: str | None = None) -> None:
        """parent: folder under which the cache keeps its own. key: what can move a bit of `compute(rows)`."""
        text = json.dumps(dict(key), sort_keys=True)
        self.folder = parent / blake2b(text.encode(), digest_size=10).hexdigest()
        self.hits, self.misses, self.note = 0, 0, note
        self._compute, self._text = compute, text

    def get(self, rows: Rows) -> NDArray[Any]:
        """The activations of the batch `rows`, read if they are there, else computed and kept."""
        path = self._path(rows)
        if self.note is None:
            with suppress(OSError, ValueError, EOFError):  # missing, unreadable or torn: it is computed again
                found = np.load(path, mmap_mode="r")
                self.hits += 1
                return found  # type: ignore[no-any-return]
        self.misses += 1
        values = self._compute(rows)
        if self.note is None:
            self._keep(path, values)
        return values

    def missing(self, batches: Sequence[Rows]) -> list[Rows]:
        """Those batches that aren't there yet, each once."""
        if self.note is not None:
            return []
        by_path = {self._path(rows): rows for rows in batches}
        return [rows for path, rows in by_path.items() if not path.exists()]

    def make_room(self, nbytes: int) -> None:
        """Switch the cache off, saying so, when the disk can't take `nbytes` more."""
        nearest = next(folder for folder in (self.folder, *self.folder.parents) if folder.exists())
        free = shutil.disk_usage(nearest).free
        if nbytes + SPARE_BYTES > free:
            self.note = f"prefix cache off: it needs {nbytes >> 20} MiB under `{self.folder.parent}`, {free >> 20} MiB are free"

    def _keep(self, path: Path, values: NDArray[Any]) -> None:
        try:
            if not self.folder.exists():
                self.folder.mkdir(parents=True, exist_ok=True)
                (self.folder / "key.json").write_text(self._text)
            save(path, values)
        except OSError as error:
            self.note = f"prefix cache off: `{self.folder}` can't be written: {error}"

    def _path(self, rows: Rows) -> Path:
        name = blake2b(np.ascontiguousarray(rows, np.int64).data, digest_size=12).hexdigest()
        return self.folder / f"{name}.npy"


def machine_key(device: str = "cpu") -> dict[str, str]:
    """What can move a bit and isn't in the data or the model: torch, and the kernels that this processor, or this GPU, gets."""
    import torch

    if device != "cpu":
        return {"torch": torch.__version__, "gpu": torch.cuda.get_device_name(device)}
    return {"torch": torch.__version__, "cpu": f"{platform.machine()} {torch.backends.cpu.get_cpu_capability()}"}
