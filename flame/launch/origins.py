"""Which data set `flame data prepare` is asked for: one known by name, or a source with a name of one's own.

At most one of the origins (`--csv`, ...) may be given, each with the options that are its own.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from flame.config.errors import ConfigError
from flame.learn.data.sources import PREPARED, Source
from flame.learn.data.tables import from_csv

NEEDS = {"csv": ("text_col", "label_col")}
"""Options without which an origin can't be read."""
OWN = {"text_col": ("csv",), "label_col": ("csv",), "test_csv": ("csv",)}
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


def _source(origin: str, options: Mapping[str, Any]) -> Source:
    path: Path = options[origin]
    return lambda say: from_csv(path, options["text_col"], options["label_col"], options.get("test_csv"), say)
