"""One append-only JSONL file per process, readable after a kill.

A line is written whole or is torn at the end of the file, which a reader drops. Records below the
run's level cost one comparison.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import orjson

from flame.telemetry.records import LEVELS, VERSION, Level, Record


class Sink(Protocol):
    """Where records go."""

    def write(self, node: str, t_ns: int, stamp_ns: int | None, record: Record) -> None:
        """Take one record of `node`, made at `t_ns` of the driver's clock."""
        ...

    def takes(self, level: Level) -> bool:
        """Whether records of that level are kept; what nobody keeps need not be made."""
        ...

    def close(self) -> None:
        """Flush what is buffered."""
        ...


class Silence:
    """The sink of a run without telemetry."""

    def write(self, node: str, t_ns: int, stamp_ns: int | None, record: Record) -> None:
        """Forget it."""

    def takes(self, level: Level) -> bool:
        """Nothing."""
        return False

    def close(self) -> None:
        """Nothing to do."""


@dataclass(frozen=True, slots=True)
class TelemetryPlace:
    """How far a file was written: bytes, and the last number of each node."""

    size: int
    seq: dict[str, int]


class Writer:
    """Writes the lines of one process. clock: `virtual` or `wall`."""

    def __init__(self, path: Path, run: str, incarnation: str, clock: str, level: Level, place: TelemetryPlace | None = None) -> None:
        """place: where to go on in a file that is there; what stands after it is cut off."""
        path.parent.mkdir(parents=True, exist_ok=True)
        if place is not None:
            os.truncate(path, place.size)
        self._file = path.open("ab", buffering=0 if clock == "wall" else 1 << 16)
        self._run, self._incarnation, self._clock = run, incarnation, clock
        self._levels = set(LEVELS[: LEVELS.index(level) + 1])
        self._seq = dict(place.seq) if place else {}

    def place(self) -> TelemetryPlace:
        """How far it is written; all of it is on the disk then."""
        self._file.flush()
        os.fsync(self._file.fileno())
        return TelemetryPlace(self._file.tell(), dict(self._seq))

    def write(self, node: str, t_ns: int, stamp_ns: int | None, record: Record) -> None:
        """Append one line, unless the record's level is left out. Raises OSError when the disk refuses."""
        if record.level not in self._levels:
            return
        seq = self._seq[node] = self._seq.get(node, -1) + 1
        line = {
            "v": VERSION, "run": self._run, "seq": seq, "node": node, "incarnation": self._incarnation,
            "clock": self._clock, "t_ns": t_ns, "stamp_ns": stamp_ns, "record": record,
        }  # fmt: skip
        self._file.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))

    def takes(self, level: Level) -> bool:
        """Whether that level is within this run's."""
        return level in self._levels

    def close(self) -> None:
        """Flush and close."""
        self._file.close()
