"""Which data set `flame data prepare` is asked for: one known by name, or a source with a name of one's own.

At most one of the origins (`--csv`, ...) may be given, each with the options that are its own.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from flame.config.errors import ConfigError
from flame.learn.data.fednlp import read_corpus
from flame.learn.data.hub import from_hub
from flame.learn.data.shards import from_shards
from flame.learn.data.sources import PREPARED, Source
from flame.learn.data.tables import from_csv

NEEDS: dict[str, tuple[str, ...]] = {"csv": ("text_col", "label_col"), "from_hub": (), "h5": (), "shards": ()}
"""Options without which an origin can't be read."""
OWN = {"text_col": ("csv", "from_hub"), "label_col": ("csv", "from_hub"), "test_csv": ("csv",), "partition_h5": ("h5",)}
"""Which origins an option belongs to."""


def wanted(name: str | None, given: Mapping[str, Any]) -> tuple[str, Source | None]:
    """The name of the set, and its source unless the name says it all. given: option -> value, None where it wasn't given."""
    options = {option: value for option, value in given.items() if value is not None}
    origins = [option for option in NEEDS if option in options]
    if not name:
        listed = ", ".join(f"`{each}`" for each in PREPARED)
        raise ConfigError("which data set?", f"name a known one ({listed}), or give `--name` and where it comes from")
    if len(origins) > 1:
        raise ConfigError(f"{' and '.join(map(flag, origins))} don't go together", "give one origin")
    _check_options(origins[0] if origins else None, options)
    return name, _source(origins[0], options) if origins else None


def flag(option: str) -> str:
    """As it is typed: `--text-col`."""
    return f"`--{option.replace('_', '-')}`"


def _check_options(origin: str | None, options: Mapping[str, Any]) -> None:
    for option, owners in OWN.items():
        if option in options and origin not in owners:
            raise ConfigError(f"{flag(option)} says nothing here", f"it goes with {' or '.join(map(flag, owners))}")
    missing = [option for option in NEEDS.get(origin or "", ()) if option not in options]
    if missing:
        raise ConfigError(f"{flag(origin or '')} needs {' and '.join(map(flag, missing))}", "say which columns hold text and label")


def partitions(given: Mapping[str, Any]) -> Path | None:
    """The file of partitions that goes with `--h5`: as given, or the one beside it, as FedNLP names it."""
    data: Path | None = given.get("h5")
    if data is None or given.get("partition_h5") is not None:
        return given.get("partition_h5")
    name = data.name.replace("_data.h5", "_partition.h5")
    beside = (data.with_name(name), data.parent.parent / "partition_files" / name)
    return next((path for path in beside if path.exists() and path != data), None)


def _source(origin: str, options: Mapping[str, Any]) -> Source:
    given = options[origin]
    match origin:
        case "csv":
            return lambda say: from_csv(given, options["text_col"], options["label_col"], options.get("test_csv"), say)
        case "from_hub":
            return lambda say: from_hub(given, options.get("text_col", "text"), options.get("label_col", "label"), say)
        case "h5":
            return lambda say: read_corpus(given)
    return lambda say: from_shards(given, say)
