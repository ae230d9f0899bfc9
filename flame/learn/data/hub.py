"""Data sets of the Hugging Face hub, read by the `datasets` library, which is an extra and imported when it is asked for.

The name may be that of a hub data set, or of a folder with files that the library reads (CSV, JSON, Parquet).
The `train` split trains and `test` is evaluated (`validation` where there is none); without either a tenth of
`train` is set apart. Labels are the names that the data set gives its classes, else the values themselves.
"""

from collections.abc import Callable, Mapping
from typing import Any

from flame.config.errors import ConfigError, nearest
from flame.learn.data.fednlp import Corpus
from flame.learn.data.tables import Samples, corpus

EXTRA = "flame-fl[hub]"
Say = Callable[[str], None]


def from_hub(name: str, text: str = "text", label: str = "label", say: Say = lambda line: None) -> Corpus:
    """A corpus of the data set `name`. Raises ConfigError where the library, the data set, a split or a column is missing."""
    return from_splits(name, _load(name, say), text, label, say)


def from_splits(name: str, splits: Mapping[str, Any], text: str, label: str, say: Say = lambda line: None) -> Corpus:
    """A corpus of splits as the library gives them: each has `column_names`, `features`, and columns by name."""
    if "train" not in splits:
        raise ConfigError(f"`{name}` has no split `train`, only {', '.join(sorted(splits))}", "choose a data set that has one")
    test = next((split for split in ("test", "validation") if split in splits), None)
    used = [split for split in ("train", test) if split]
    rows = [_rows(f"{name}` (split `{split}`)", splits[split], text, label) for split in used]
    say(f"{name}: {', '.join(f'{len(found)} rows of {split}' for split, found in zip(used, rows, strict=True))}")
    return corpus(*rows)


def _load(name: str, say: Say) -> Mapping[str, Any]:
    try:
        from datasets import load_dataset
    except ImportError:
        raise ConfigError("the `datasets` library isn't installed", f"run `pip install '{EXTRA}'`") from None
    say(f"loading {name}")
    try:
        return load_dataset(name)  # type: ignore[no-any-return]
    except Exception as error:  # the library raises what its many readers raise
        said = " ".join(str(error).split())[:300]
        raise ConfigError(f"`{name}` can't be loaded: {said}", "check the name, the network, and HF_HUB_OFFLINE") from error


def _rows(where: str, split: Any, text: str, label: str) -> Samples:
    for column, option in ((text, "--text-col"), (label, "--label-col")):
        if column not in split.column_names:
            known = list(split.column_names)
            raise ConfigError(f"`{where} has no column `{column}`", f"{nearest(column, known)}`{option}` is one of {', '.join(known)}")
    names = getattr(split.features[label], "names", None)
    labels = [str(value) if names is None else names[value] for value in split[label]]
    return [(each, words.strip()) for each, words in zip(labels, split[text], strict=True) if (words or "").strip()]
