"""The FedNLP layout: one HDF5 file of samples, one of partitions (FedNLP, NAACL'22; algorithms.md, section 10).

    <name>_data.h5        /attributes  JSON: index_list, train_index_list, test_index_list, label_vocab, num_labels, task_type
                          /X/<i>, /Y/<i>  utf-8 scalars: text and label of sample i
    <name>_partition.h5   /<method>/n_clients, /<method>/alpha, /<method>/partition_data/<client>/{train,test}

Files found in the wild differ, and are read all the same: `alpha=1` beside `alpha=1.0` in a method's name,
counts such as `clients=100.0`, no train or test list (then nine tenths train, by a derived shuffle), labels
stored as ids instead of names, one list per client. Positions are what this project computes with: a
sample's position is its place in `index_list`, whatever its number in the file.
"""

import json
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from shutil import copyfile
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from flame.config.errors import ConfigError
from flame.core.rng import derive

Positions = NDArray[np.int64]
TEXT = h5py.string_dtype("utf-8")


@dataclass(frozen=True, slots=True)
class Corpus:
    """Samples in file order. index: (n,) numbers in the file. labels: (n,) ids into `vocab`. train, test: positions."""

    texts: list[str]
    labels: NDArray[np.int64]
    vocab: tuple[str, ...]
    index: NDArray[np.int64]
    train: Positions
    test: Positions


@dataclass(frozen=True, slots=True)
class Method:
    """A partition in a file. name: its group. kind: `uniform`, `niid_label`, ... clients: N. alpha: None for none."""

    name: str
    kind: str
    clients: int
    alpha: float | None

    def serves(self, kind: str, clients: int, alpha: float) -> bool:
        """Whether it is the partition asked for; alpha counts for `niid_label` only."""
        return (self.kind, self.clients) == (kind, clients) and (kind == "uniform" or self.alpha == alpha)


def method_name(kind: str, clients: int, alpha: float) -> str:
    """As this project writes it: `uniform_clients=10`, `niid_label_clients=10_alpha=1.0`."""
    return f"{kind}_clients={clients}" + ("" if kind == "uniform" else f"_alpha={float(alpha)}")


def read_corpus(path: Path) -> Corpus:
    """All samples of a data file. Raises ConfigError when the file isn't one."""
    with _opened(path, "attributes") as file:
        try:
            attributes = json.loads(_text(file["attributes"][()]))
            index = _index(attributes, file)
            texts = [_text(file["X"][str(i)][()]) for i in index]
            names = [_text(file["Y"][str(i)][()]) for i in index]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ConfigError(f"`{path}` isn't in the FedNLP layout: {error}", "give a file that is") from None
    vocab, ids = _vocabulary(attributes.get("label_vocab"), names)
    labels = np.array([_label(name, ids, path) for name in names], np.int64)
    train, test = _split(attributes, index)
    return Corpus(texts, labels, vocab, index, train, test)


def write_corpus(path: Path, corpus: Corpus) -> None:
    """Write a data file, whole or not at all."""
    attributes = {
        "index_list": corpus.index.tolist(),
        "train_index_list": corpus.index[corpus.train].tolist(),
        "test_index_list": corpus.index[corpus.test].tolist(),
        "label_vocab": {name: number for number, name in enumerate(corpus.vocab)},
        "num_labels": len(corpus.vocab),
        "task_type": "text_classification",
    }
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    with h5py.File(temporary, "w", libver="latest") as file:
        file["attributes"] = json.dumps(attributes)
        x, y = file.create_group("X"), file.create_group("Y")
        for i, text, label in zip(corpus.index.tolist(), corpus.texts, corpus.labels.tolist(), strict=True):
            x.create_dataset(str(i), data=text, dtype=TEXT)
            y.create_dataset(str(i), data=corpus.vocab[label], dtype=TEXT)
    temporary.replace(path)


def methods(path: Path) -> list[Method]:
    """The partitions in a file, by name; none if the file is missing."""
    if not path.exists():
        return []
    with _opened(path) as file:
        return [_method(name, group) for name, group in sorted(file.items()) if "partition_data" in group]


def read_partition(path: Path, name: str, index: NDArray[np.int64]) -> list[tuple[Positions, Positions]]:
    """Per client, the positions of its train and test samples (test is empty where the file has none).

    Raises ConfigError when the partition names a sample that the data file lacks.
    """
    with _opened(path, name) as file:
        clients = file[name]["partition_data"]
        ordered = sorted(clients, key=lambda client: (len(client), client))
        return [_client(clients[client], index, f"{path.name}:/{name}/partition_data/{client}") for client in ordered]


def write_partition(path: Path, method: Method, parts: Sequence[tuple[Positions, Positions]], index: NDArray[np.int64]) -> None:
    """Add a partition to a file, which is replaced at once. parts: positions per client, stored as sample numbers."""
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    if path.exists():
        copyfile(path, temporary)
    with h5py.File(temporary, "a") as file:
        with suppress(KeyError):
            del file[method.name]
        group = file.create_group(method.name)
        group["n_clients"] = method.clients
        if method.alpha is not None:
            group["alpha"] = method.alpha
        for client, (train, test) in enumerate(parts):
            group[f"partition_data/{client}/train"] = index[train]
            group[f"partition_data/{client}/test"] = index[test]
    temporary.replace(path)


def _opened(path: Path, needs: str | None = None) -> h5py.File:
    try:
        file = h5py.File(path, "r")
    except OSError as error:
        raise ConfigError(
            f"`{path}` can't be read as HDF5: {error}",
            "give a file in the FedNLP layout; if `flame data prepare` made this one, delete it and prepare the data set again",
        ) from None
    if needs is not None and needs not in file:
        held = ", ".join(sorted(file)) or "nothing"
        file.close()
        raise ConfigError(f"`{path}` has no `/{needs}`; it holds {held}", "give a file in the FedNLP layout")
    return file


def _index(attributes: Mapping[str, Any], file: h5py.File) -> NDArray[np.int64]:
    listed = attributes.get("index_list")
    return np.array(sorted(map(int, file["X"])) if listed is None else listed, np.int64)


def _vocabulary(vocab: Mapping[str, int] | None, names: Sequence[str]) -> tuple[tuple[str, ...], dict[str, int]]:
    """Label names by id, and the ids by name; without a vocabulary, the names in order."""
    ids = {name: int(number) for name, number in vocab.items()} if vocab else {name: i for i, name in enumerate(sorted(set(names)))}
    by_id = {number: name for name, number in ids.items()}
    return tuple(by_id.get(number, str(number)) for number in range(max(by_id) + 1)), ids


def _label(name: str, ids: Mapping[str, int], path: Path) -> int:
    """The id of a label that is stored by name, or by id."""
    if name in ids:
        return ids[name]
    with suppress(ValueError):
        number = int(float(name))
        if number in ids.values():
            return number
    raise ConfigError(f"`{path}` has the label `{name}`, which its label_vocab lacks", f"known labels: {', '.join(sorted(ids))}")


def _split(attributes: Mapping[str, Any], index: NDArray[np.int64]) -> tuple[Positions, Positions]:
    """Train and test positions: as listed, or what the other list leaves, or a derived nine to one."""
    train, test = (_listed(attributes.get(f"{split}_index_list"), index) for split in ("train", "test"))
    every = np.arange(len(index))
    if train is None and test is None:
        return nine_to_one(len(index))
    if train is None:
        return np.setdiff1d(every, test), test  # type: ignore[arg-type,return-value]
    return train, np.setdiff1d(every, train) if test is None else test


def nine_to_one(count: int) -> tuple[Positions, Positions]:
    """Train and test positions of `count` samples that come without a split."""
    order = np.random.Generator(np.random.Philox(key=derive(0, "split", count))).permutation(count)
    cut = count * 9 // 10
    return np.sort(order[:cut]), np.sort(order[cut:])


def _listed(numbers: Sequence[int] | None, index: NDArray[np.int64]) -> Positions | None:
    return positions(np.array(numbers, np.int64), index, "the data file's index lists") if numbers else None


def positions(numbers: NDArray[np.int64], index: NDArray[np.int64], where: str) -> Positions:
    """Where the sample `numbers` stand in `index`. Raises ConfigError for one that isn't there."""
    order = np.argsort(index, kind="stable")
    found = np.searchsorted(index[order], numbers)
    known = found < len(index)
    known[known] = index[order][found[known]] == numbers[known]
    if not known.all():
        raise ConfigError(f"{where} names sample {numbers[~known][0]}, which the data file lacks", "prepare data and partition together")
    return order[found]


def _method(name: str, group: h5py.Group) -> Method:
    kind = re.split(r"_(?=clients=|alpha=)", name)[0]
    alpha = _number(name, "alpha") if "alpha" not in group else float(group["alpha"][()])
    clients = len(group["partition_data"])
    return Method(name, kind, clients, alpha)


def _number(name: str, key: str) -> float | None:
    found = re.search(rf"{key}=([0-9.]+)", name)
    return float(found[1]) if found else None


def _client(group: h5py.Group, index: NDArray[np.int64], where: str) -> tuple[Positions, Positions]:
    empty = np.zeros(0, np.int64)
    train, test = (group[split][()].astype(np.int64).ravel() if split in group else empty for split in ("train", "test"))
    return positions(train, index, where), positions(test, index, where)


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
