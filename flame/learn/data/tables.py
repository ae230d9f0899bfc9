"""Tables of labelled texts: CSV files, and rows of any origin, as a corpus.

Where a table comes with test rows, these are the test split, in their order; where it doesn't, a derived
nine to one is made. Labels become ids in the sorted order of their names, numbers in that of their values.
"""

import csv
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from flame.config.errors import ConfigError, nearest
from flame.learn.data.fednlp import Corpus, nine_to_one

Samples = list[tuple[str, str]]
"""(label, text) of each row."""
AGNEWS = {"1": "World", "2": "Sports", "3": "Business", "4": "SciTech"}
"""Its labels as published (Zhang et al., NeurIPS'15)."""


def corpus(train: Samples, test: Samples | None = None) -> Corpus:
    """A corpus of these rows: train first, then test; without test rows a tenth is set apart."""
    rows = [*train, *(test or [])]
    vocab = tuple(sorted({label for label, _ in rows}, key=_order))
    ids = {label: number for number, label in enumerate(vocab)}
    index = np.arange(len(rows))
    splits = nine_to_one(len(rows)) if test is None else (index[: len(train)], index[len(train) :])
    return Corpus([text for _, text in rows], np.array([ids[label] for label, _ in rows], np.int64), vocab, index, *splits)


def agnews(folder: Path, say: Callable[[str], None] = lambda line: None) -> Corpus:
    """AG News from `folder`: train.csv and test.csv with `label,content`, labels 1 to 4. The test split is that of test.csv."""
    splits = []
    for name in ("train.csv", "test.csv"):
        rows = read_csv(folder / name, "content", "label")
        odd = sorted({label for label, _ in rows}.difference(AGNEWS))
        if odd:
            raise ConfigError(f"`{folder / name}` has the label `{odd[0]}`", "AG News has the labels 1 to 4; use `--csv` for another set")
        say(f"{folder / name}: {len(rows)} rows")
        splits.append([(AGNEWS[label], text) for label, text in rows])
    return corpus(*splits)


def from_csv(path: Path, text: str, label: str, test: Path | None = None, say: Callable[[str], None] = lambda line: None) -> Corpus:
    """A corpus of one CSV file, or of a train and a test file; text, label: names of its columns."""
    splits = [read_csv(each, text, label) for each in (path, test) if each is not None]
    for each, rows in zip((path, test), splits, strict=False):
        say(f"{each}: {len(rows)} rows")
    return corpus(*splits)


def read_csv(path: Path, text: str, label: str) -> Samples:
    """The labelled texts of a UTF-8 CSV file with a header; rows without text are skipped.

    Raises ConfigError for a file that can't be read, lacks a column, or has a row without a label.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return list(_rows(path, csv.DictReader(file), text, label))
    except OSError as error:
        raise ConfigError(f"`{path}` can't be read: {error.strerror}", "give the path of a CSV file") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise ConfigError(f"`{path}` isn't a CSV file in UTF-8: {error}", "convert it first") from None


def _rows(path: Path, reader: csv.DictReader, text: str, label: str) -> Iterable[tuple[str, str]]:  # type: ignore[type-arg]
    present = list(reader.fieldnames or [])
    if not present:
        raise ConfigError(f"`{path}` is empty", "give a file with a header and rows")
    for wanted, option in ((text, "--text-col"), (label, "--label-col")):
        if wanted not in present:
            raise ConfigError(f"`{path}` has no column `{wanted}`", f"{nearest(wanted, present)}`{option}` is one of {', '.join(present)}")
    found = False
    for row in reader:
        if not (row[text] or "").strip():
            continue
        if not (row[label] or "").strip():
            raise ConfigError(f"`{path}` has a text without a label at line {reader.line_num}", "label it or take it out")
        found = True
        yield row[label].strip(), row[text].strip()
    if not found:
        raise ConfigError(f"`{path}` has no row with a text", "give a file with rows")


def _order(label: str) -> tuple[bool, float, str]:
    """Whole numbers first, by value; then names."""
    number = label.isascii() and label.isdigit()
    return not number, float(label) if number else 0.0, label
