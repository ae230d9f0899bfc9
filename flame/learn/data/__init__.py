"""Data sets: preparing, reading and dealing them to clients.

`prepare` fetches a named set and makes the partitions of the shipped run-sets; `partition` adds another;
`load` is what a learner reads. Known sets: `r8` (Reuters-21578 R8, 8 classes of news).
"""

from collections.abc import Callable
from pathlib import Path

from flame.config.errors import unknown
from flame.learn.data.dataset import SHIPPED, Dataset, data_folder, ensure_partition, find, load
from flame.learn.data.sources import PREPARED

__all__ = ["PREPARED", "Dataset", "data_folder", "ensure_partition", "find", "load", "partition", "prepare"]

Say = Callable[[str], None]


def prepare(name: str, folder: Path | None = None, say: Say = lambda line: None) -> Path:
    """Prepare the data set `name` under `folder` (default: `data_folder()`), with the shipped partitions; returns its data file.

    What is there already is kept. Raises ConfigError for an unknown name or a failed download. say: takes progress lines.
    """
    if name not in PREPARED:
        raise unknown("data set", name, list(PREPARED), " to prepare")
    data = PREPARED[name]((folder or data_folder()) / name, say)
    for kind, clients, alpha in SHIPPED:
        say(f"partition {ensure_partition(data, kind, clients, alpha)}")
    return data


def partition(name: str, kind: str, clients: int, alpha: float = 1.0, folder: Path | None = None) -> str:
    """Add a partition to the prepared data set `name`, unless it is there; returns its name in the partition file."""
    return ensure_partition(find(name, folder or data_folder()), kind, clients, alpha)
