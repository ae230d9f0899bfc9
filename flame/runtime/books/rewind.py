"""The books of workers that are gone, cut back to a checkpoint of their aggregator.

The aggregator's own books are cut where the checkpoint says. A worker's stand in its own order and by its own clock, which
is a leg behind the aggregator's: they are cut before the first line that is later than the checkpoint, or that is about
an assign which the checkpoint doesn't know. What was known by then and is done again stands there twice, once per life
of the worker, as after any death of one.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from flame.core.messages import AGGREGATOR

Later = Callable[[dict[str, Any]], bool]


def rewind(run: Path, now: int, newest: int) -> int:
    """Cut them back to `now` (ns since ready) and to assigns up to `newest`. Returns how many lives the run's workers had."""
    lives = 0
    for folder, later in (("telemetry", _told_later(now, newest)), ("journal", _stepped_later(now, newest))):
        for path in (run / folder).glob("*.jsonl"):
            worker, _, life = path.stem.rpartition("-")
            if worker != AGGREGATOR:
                _cut(path, later)
                lives = max(lives, int(life) + 1)
    return lives


def _cut(path: Path, later: Later) -> None:
    """Before the first line that is later, or that is torn."""
    size = 0
    with path.open("rb") as file:
        for line in file:
            if not line.endswith(b"\n") or later(orjson.loads(line)):
                break
            size += len(line)
    os.truncate(path, size)


def _told_later(now: int, newest: int) -> Later:
    return lambda line: line["t_ns"] > now or line["record"].get("id", 0) > newest


def _stepped_later(now: int, newest: int) -> Later:
    def later(line: dict[str, Any]) -> bool:
        step = line.get("step")
        if step is None:
            return False
        event = step["event"]
        return bool(step["now"] > now or event.get("job", event.get("msg", {}).get("id", 0)) > newest)

    return later
