"""A columnar copy beside an HDF5 file: the FedNLP layout has a dataset per sample, which is slow to open.

A folder `columns-<digest of the file>` holds, for n samples:

    texts.bin, offsets.npy (n + 1,)   utf-8 texts end to end
    labels.npy, index.npy, train.npy, test.npy, meta.json
    ids-<model>-<tokens>.npy (2, n, tokens) int32   token ids and attention mask of one tokenizer

It is made once, whole or not at all, and mapped read-only by every process. Its name carries the digest
of its source, so a changed file gets a new one.
"""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flame.learn.data.fednlp import Corpus, Positions, read_corpus
from flame.learn.data.shards import tokenized

VERSION = 1
"""Of the folder's contents; part of its name."""
Tokenize = Callable[[list[str]], NDArray[np.int32]]


@dataclass(frozen=True, slots=True)
class Columns:
    """n samples, mapped. digest: over texts, labels and splits. labels: (n,). index: (n,) numbers in the source."""

    folder: Path
    digest: str
    vocab: tuple[str, ...]
    labels: NDArray[np.int64]
    index: NDArray[np.int64]
    train: Positions
    test: Positions

    def texts(self) -> list[str]:
        """All texts, in order."""
        raw, offsets = (self.folder / "texts.bin").read_bytes(), np.load(self.folder / "offsets.npy")
        return [raw[start:stop].decode() for start, stop in pairwise(offsets)]

    def token_ids(self, model: str, tokens: int, tokenize: Tokenize) -> NDArray[np.int32]:
        """Ids and mask (2, n, tokens), mapped; made by `tokenize` the first time, unless the texts are token ids already."""
        path = self.folder / f"ids-{model}-{tokens}.npy"
        if not path.exists():
            texts = self.texts()
            held = tokenized(texts, model, tokens)
            save(path, tokenize(texts) if held is None else held)
        return np.load(path, mmap_mode="r")  # type: ignore[no-any-return]


def columns(source: Path) -> Columns:
    """The columnar copy of a data file, made if it isn't there. Raises ConfigError when the file isn't readable."""
    folder = source.parent / f"columns-v{VERSION}-{blake2b(source.read_bytes(), digest_size=8).hexdigest()}"
    if not (folder / "meta.json").exists():
        _build(read_corpus(source), folder)
    meta = json.loads((folder / "meta.json").read_text())
    held = {name: np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("labels", "index", "train", "test")}
    return Columns(folder, meta["digest"], tuple(meta["vocab"]), **held)


def save(path: Path, values: NDArray[Any]) -> None:
    """Write an array file, whole or not at all, whoever else is writing the same."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    with temporary.open("wb") as file:
        np.save(file, values, allow_pickle=False)
    temporary.replace(path)


def _build(corpus: Corpus, folder: Path) -> None:
    """Fill a folder under another name, then rename it; a copy that another process made first is as good."""
    temporary = Path(mkdtemp(dir=folder.parent, prefix="columns-tmp-"))
    encoded = [text.encode() for text in corpus.texts]
    (temporary / "texts.bin").write_bytes(b"".join(encoded))
    np.save(temporary / "offsets.npy", np.cumsum([0, *map(len, encoded)]))
    for name in ("labels", "index", "train", "test"):
        np.save(temporary / f"{name}.npy", getattr(corpus, name))
    (temporary / "meta.json").write_text(json.dumps({"digest": digest(corpus), "vocab": corpus.vocab}))
    temporary.chmod(0o755)
    try:
        temporary.rename(folder)
    except OSError:
        rmtree(temporary)
        if not folder.exists():
            raise


def digest(corpus: Corpus) -> str:
    """Hex blake2b-128 of what is computed with, independent of how it is stored."""
    hasher = blake2b(digest_size=16)
    for text in map(str.encode, corpus.texts):
        hasher.update(len(text).to_bytes(8, "big"))
        hasher.update(text)
    for block in (corpus.labels, corpus.train, corpus.test):
        hasher.update(np.ascontiguousarray(block, np.int64).data)
    hasher.update(json.dumps(corpus.vocab).encode())
    return hasher.hexdigest()
