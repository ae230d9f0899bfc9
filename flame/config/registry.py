"""Files that describe devices, and how their entries are dealt to the trainers.

Delays (`delays.registry`), in seconds, are one of
    {"t0": 4.0, "t1": 16.0}                     by the trainers' names
    {"1": 4.0, "2": 16.0}, or [4.0, 16.0]       in order; keys in order of their numbers, then of their letters
    {"clients": {"1": {"delay": 4.0}}}          the file of 300 phones: trainer i takes the i-th
Scores (`delays.ai_benchmark`) are a list of phones, {"CPU_F_AI_Score": "1548", ...}.

Availability (`availability.path`) is one of
    {"clients": {"1": {"2st": [[0, 2], [300, 0]], "3st_50": ..., "3st_75": ...}}}
        s after the start, state: 2 trains, 1 evaluates only, 0 away. Of the file of 300 phones every client is
        forced on for its first 300 s: `skip_s` is left out. The last event is where a client's record ends.
    {"1": {"active": [0, 900], "inactive": [600, 1500], "finish_time": 2000, ...}}
        FedScale's intervals: from active[i] to inactive[i] the client trains, else it is away; the record
        ends at `finish_time`. (FedScale ships a pickle; nothing here unpickles: store it as JSON.)

A file with fewer clients than trainers is refused, unless `reuse: true` lets trainers share them in turn.
"""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from flame.config.errors import ConfigError, shown, unknown


def read(path: str, field: str) -> Any:
    """What the JSON file at `path` holds. field: who names it. Raises ConfigError."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"`{field}`: there is no file `{path}`", f"give a path that exists, seen from `{Path.cwd().name}`") from None
    except (OSError, ValueError) as error:
        raise ConfigError(f"`{field}`: `{path}` can't be read as JSON: {error}", "give a JSON file") from None


def delays(path: str, nodes: Sequence[str], reuse: bool) -> list[float]:
    """The delay of each node, in seconds."""
    field = "delays.registry"
    held = read(path, field)
    if isinstance(held, list):
        held = {str(number): value for number, value in enumerate(held)}
    entries = _clients(held, path, field)
    dealt = [entries[node] for node in nodes] if all(node in entries for node in nodes) else deal(entries, nodes, reuse, path, field)
    return [_delay(value, path, field) for value in dealt]


def _delay(entry: Any, path: str, field: str) -> float:
    value = entry.get("delay") if isinstance(entry, Mapping) else entry
    return _positive(value, f"`{field}`: `{path}` holds the delay {shown(value)}")


def scores(path: str, column: str) -> list[float]:
    """The scores of all phones that have one."""
    field = "delays.ai_benchmark.path"
    held = read(path, field)
    rows = [row for row in held if isinstance(row, Mapping)] if isinstance(held, list) else []
    if not rows:
        raise ConfigError(f"`{field}`: `{path}` is no list of phones", "give a file of AI-Benchmark's scores: `[{...}, ...]`")
    if not any(column in row for row in rows):
        raise unknown("column", column, list(rows[0]), f" in `{path}` (`delays.ai_benchmark.score`)")
    return [_positive(row[column], f"`{field}`: `{path}` holds the score {shown(row[column])}") for row in rows if row.get(column)]


def _positive(value: Any, what: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = 0.0
    if isinstance(value, bool) or not 0 < number < float("inf"):
        raise ConfigError(what, "correct the file: a finite number over 0")
    return number


def clients(path: str, nodes: Sequence[str], reuse: bool) -> list[Mapping[str, Any]]:
    """The client of each node in a file of availability, as it stands there."""
    field = "availability.path"
    entries = _clients(read(path, field), path, field)
    for name, entry in entries.items():
        if not isinstance(entry, Mapping):
            raise ConfigError(
                f"`{field}`: client `{name}` of `{path}` is {shown(entry)}", "give traces in a format of `flame.config.registry`"
            )
    return deal(entries, nodes, reuse, path, field)


def _clients(held: Any, path: str, field: str) -> Mapping[str, Any]:
    entries = held.get("clients", held) if isinstance(held, Mapping) else None
    if not isinstance(entries, Mapping) or not entries:
        raise ConfigError(f"`{field}`: `{path}` holds no clients", 'give `{"clients": {"1": ...}}` or `{"1": ...}`')
    return entries


def deal(entries: Mapping[str, Any], nodes: Sequence[str], reuse: bool, path: str, field: str) -> list[Any]:
    """The i-th entry for node i. Raises ConfigError where there are too few, unless `reuse` takes them in turn."""
    held, section = [entries[key] for key in sorted(entries, key=_numbers_first)], field.partition(".")[0]
    if len(held) < len(nodes) and not reuse:
        raise ConfigError(
            f"`{field}`: `{path}` has {len(held)} clients, fewer than `trainers` N = {len(nodes)}",
            f"lower N (`trainers: {len(held)}`), or let trainers share them (`{section}.reuse: true`)",
        )
    return [held[number % len(held)] for number in range(len(nodes))]


def _numbers_first(key: str) -> tuple[int, str]:
    digits = re.search(r"\d+", key)
    return (int(digits[0]) if digits else -1, key)
