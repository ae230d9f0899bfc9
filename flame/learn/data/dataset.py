"""A condition's data: which rows each trainer has, in which bins, and which rows are evaluated.

Data lie in `$FLAME_DATA`, or `data` in the current folder: `<name>/<name>_data.h5` with its partitions
beside it (the folders `data_files` and `partition_files` of FedNLP are looked into as well). Partitions and
the evaluation's subset are functions of the data alone, so that runs with different seeds share them.
"""

import os
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import numpy as np

from flame.config.condition import Condition
from flame.config.errors import ConfigError
from flame.core.rng import derive
from flame.learn.data.columnar import Columns, columns
from flame.learn.data.fednlp import Method, Positions, method_name, methods, read_partition, write_partition
from flame.learn.data.partition import deal
from flame.learn.data.sources import PREPARED

SHIPPED = (("uniform", 10, 1.0), ("niid_label", 10, 1.0), ("uniform", 100, 1.0), ("niid_label", 100, 1.0))
"""Partitions that `prepare` makes: those of the run-sets that are shipped."""


@dataclass(frozen=True, slots=True)
class Dataset:
    """bins: per lap. parts: positions of each trainer's samples, in bin order. test: positions of the evaluated rows."""

    columns: Columns
    parts: dict[str, Positions]
    test: Positions
    bins: int
    digest: str

    def bin(self, node: str, data_id: int, size: int) -> Positions:
        """The positions (size,) of bin `data_id` of trainer `node`."""
        if not 0 <= data_id < self.bins:
            raise IndexError(f"bin {data_id} of trainer `{node}` doesn't exist; a lap has bins 0 to {self.bins - 1}")
        return self.parts[node][data_id * size : (data_id + 1) * size]


def data_folder() -> Path:
    """`$FLAME_DATA`, or `data` in the current folder."""
    return Path(os.environ.get("FLAME_DATA", "data"))


def find(name: str, folder: Path) -> Path:
    """The data file of `name`. Raises ConfigError that names what is prepared."""
    for place in (folder / name, folder, folder / "data_files"):
        if (path := place / f"{name}_data.h5").exists():
            return path
    there = present(folder)
    known = f"it has {', '.join(f'`{other}`' for other in there)}" if there else "it has none"
    how = (
        f"run `flame data prepare {name}{' --from DIR' if name == 'agnews' else ''}`"
        if name in PREPARED
        else f"put `{name}_data.h5` there in the FedNLP layout"
    )
    raise ConfigError(f"data set `{name}` isn't in `{folder}`; {known}", f"{how}, or set FLAME_DATA to the folder that has it")


def present(folder: Path) -> list[str]:
    """The names of the data sets that are prepared there."""
    return sorted({path.name.removesuffix("_data.h5") for pattern in ("*_data.h5", "*/*_data.h5") for path in folder.glob(pattern)})


def partition_file(data: Path) -> Path:
    """Where the partitions of a data file are."""
    name = data.name.replace("_data.h5", "_partition.h5")
    return data.parent.parent / "partition_files" / name if data.parent.name == "data_files" else data.with_name(name)


def ensure_partition(data: Path, kind: str, clients: int, alpha: float = 1.0) -> str:
    """The name of the partition asked for, made and stored if it isn't there. Raises ConfigError where it can't be."""
    held, path = columns(data), partition_file(data)
    for method in methods(path):
        if method.serves(kind, clients, alpha):
            return method.name
    name = method_name(kind, clients, alpha)
    splits = []
    for split, places in (("train", held.train), ("test", held.test)):
        try:
            parts = deal(kind, held.labels[places], clients, alpha, derive(0, data.name, name, split))
        except ValueError as error:
            raise ConfigError(f"partition `{name}` can't be made of the {split} rows: {error}", "ask for fewer clients") from None
        splits.append([places[part] for part in parts])
    path.parent.mkdir(parents=True, exist_ok=True)
    method = Method(name, kind, clients, None if kind == "uniform" else float(alpha))
    write_partition(path, method, list(zip(*splits, strict=True)), held.index)
    return name


def adopt_partitions(data: Path, source: Path) -> list[str]:
    """Add every partition of the file `source` to those of `data`; returns their names. Raises ConfigError where it has none."""
    found, index = methods(source), columns(data).index
    if not found:
        raise ConfigError(f"`{source}` holds no partition", "give a file in the FedNLP layout, or leave `--partition-h5` out")
    for method in found:
        write_partition(partition_file(data), method, read_partition(source, method.name, index), index)
    return [method.name for method in found]


def load(condition: Condition, folder: Path | None = None) -> Dataset:
    """The data of a condition. Raises ConfigError, with what to type, when data or partition are missing or too small."""
    data = find(condition.data or "", folder or data_folder())
    held = columns(data)
    parts = [train for train, _ in read_partition(partition_file(data), _partition(condition, data).name, held.index)]
    smallest = min(len(part) for part in parts)
    bins = smallest // condition.batch_size
    if bins == 0:
        raise ConfigError(
            f"the smallest of the {len(parts)} clients has {smallest} samples, fewer than one bin of `batch_size` {condition.batch_size}",
            "lower `batch_size` or `trainers`",
        )
    test = eval_rows(condition, held, data.name)
    digest = blake2b(held.digest.encode(), digest_size=16)
    for block in (*parts, test):
        digest.update(len(block).to_bytes(8, "big"))
        digest.update(np.ascontiguousarray(block, np.int64).data)
    named = dict(zip(condition.nodes, parts, strict=True))
    return Dataset(held, named, test, min(bins, condition.max_bins or bins), digest.hexdigest())


def eval_rows(condition: Condition, held: Columns, name: str) -> Positions:
    """The fixed subset of the test rows, in file order: a function of the data alone."""
    rows = condition.eval.rows or len(held.test)
    if rows > len(held.test):
        raise ConfigError(f"`eval.rows` is {rows}, but `{name}` has {len(held.test)} test rows", f"give at most {len(held.test)}")
    order = np.random.Generator(np.random.Philox(key=derive(0, "eval", name))).permutation(len(held.test))
    return np.sort(held.test[order[:rows]])


def _partition(condition: Condition, data: Path) -> Method:
    """The partition that the condition asks for, with as many clients as it has trainers."""
    kind, alpha, clients = condition.partition.type, condition.partition.alpha, condition.trainers
    present = methods(partition_file(data))
    for method in present:
        if method.serves(kind, clients, alpha):
            return method
    names = ", ".join(f"`{method.name}`" for method in present) or "none"
    wanted = method_name(kind, clients, alpha)
    option = "" if kind == "uniform" else f" --alpha {alpha}"
    command = f"flame data partition {condition.data} --type {kind} --clients {clients}{option}"
    raise ConfigError(f"partition `{wanted}` of `{condition.data}` is missing; present: {names}", f"make it with `{command}`")
