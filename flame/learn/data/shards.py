"""Texts that come as token ids: NumPy shards, and how a tokenised sample is kept in the FedNLP layout.

A folder of shards:

    train-*.npz, test-*.npz   ids (n, tokens), mask (n, tokens; ones, then zeros), labels (n,)
    meta.json                 {"tokenizer": "minilm" or a model directory, "labels": [names by id], "pad": 0}

In a data file such a sample's text is `[ids <model> pad=<id>] 101 2054 102`, the model by the first 16 hex digits
of its digest: it can be used with that model only, and with no fewer tokens than the longest sample has.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from flame.config.errors import ConfigError
from flame.learn.data.fednlp import Corpus
from flame.learn.data.tables import Samples, corpus
from flame.learn.pretrained import locate

MARK = re.compile(r"\[ids (\w+) pad=(\d+)\] ")


def from_shards(folder: Path, say: Callable[[str], None] = lambda line: None) -> Corpus:
    """A corpus of a folder of shards; without test shards a tenth is set apart. Raises ConfigError for what isn't as above."""
    try:
        meta = json.loads((folder / "meta.json").read_text())
        names, tokenizer, pad = list(meta["labels"]), str(meta["tokenizer"]), int(meta.get("pad", 0))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            f"`{folder / 'meta.json'}` can't be used: {error!r}", 'write {"tokenizer": "minilm", "labels": ["a", "b"], "pad": 0}'
        ) from None
    mark = f"[ids {locate(tokenizer).digest[:16]} pad={pad}] "
    splits = [[row for path in sorted(folder.glob(f"{split}-*.npz")) for row in _shard(path, names, mark)] for split in ("train", "test")]
    if not splits[0]:
        raise ConfigError(f"`{folder}` has no shard train-*.npz", "write them with ids, mask and labels")
    say(f"{folder}: {len(splits[0])} train and {len(splits[1])} test rows")
    return corpus(splits[0], splits[1] or None)


def tokenized(texts: list[str], model: str, tokens: int) -> NDArray[np.int32] | None:
    """Ids and mask (2, n, tokens) of texts that are ids; None for plain ones. Raises ConfigError for another model or too few tokens."""
    found = [MARK.match(text) for text in texts]
    if not any(found):
        return None
    out = np.zeros((2, len(texts), tokens), np.int32)
    for row, (text, mark) in enumerate(zip(texts, found, strict=True)):
        if mark is None or mark[1] != model:
            other = mark[1] if mark else "plain text"
            raise ConfigError(
                f"this data set was tokenised for the model {other}, not for {model}", "use that `model`, or prepare its texts"
            )
        ids = np.array(text[mark.end() :].split(), np.int32)
        if len(ids) > tokens:
            raise ConfigError(
                f"a tokenised sample has {len(ids)} tokens, and `tokens` is {tokens}", f"raise `tokens` to {len(ids)} at least"
            )
        out[0, row] = int(mark[2])
        out[0, row, : len(ids)], out[1, row, : len(ids)] = ids, 1
    return out


def _shard(path: Path, names: list[str], mark: str) -> Samples:
    try:
        with np.load(path, allow_pickle=False) as held:
            ids, mask, labels = held["ids"], held["mask"].astype(bool), held["labels"]
    except (OSError, ValueError, KeyError, BadZipFile) as error:
        raise ConfigError(f"`{path}` can't be used: {error}", "save ids, mask and labels with `np.savez`") from None
    fault = _fault(ids, mask, labels, len(names))
    if fault:
        raise ConfigError(f"`{path}`: {fault}", "see `flame.learn.data.shards` for the format")
    return [(names[label], mark + " ".join(map(str, row[kept]))) for row, kept, label in zip(ids, mask, labels, strict=True)]


def _fault(ids: NDArray[Any], mask: NDArray[np.bool_], labels: NDArray[Any], classes: int) -> str | None:
    if ids.ndim != 2 or ids.shape != mask.shape or labels.shape != ids.shape[:1]:
        return f"ids {ids.shape}, mask {mask.shape}, labels {labels.shape} don't fit together"
    if not (np.issubdtype(ids.dtype, np.integer) and np.issubdtype(labels.dtype, np.integer)):
        return f"ids and labels must be whole numbers, not {ids.dtype} and {labels.dtype}"
    if not mask.any(axis=1).all() or (np.diff(mask.astype(np.int8), axis=1) > 0).any():
        return "a mask must be ones, then zeros"
    return None if not len(labels) or 0 <= labels.min() <= labels.max() < classes else f"a label is outside 0 to {classes - 1}"
