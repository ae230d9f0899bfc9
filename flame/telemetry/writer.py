"""One append-only JSONL file per process, readable after a kill.

A line is written whole or is torn at the end of the file, which a reader drops. Records below the
run's level cost one comparison.
"""

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


class Writer:
    """Writes the lines of one process. clock: `virtual` or `wall`."""

    def __init__(self, path: Path, run: str, incarnation: str, clock: str, level: Level) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("ab", buffering=0 if clock == "wall" else 1 << 16)
        self._run, self._incarnation, self._clock = run, incarnation, clock
        self._levels = set(LEVELS[: LEVELS.index(level) + 1])
        self._seq: dict[str, int] = {}

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
