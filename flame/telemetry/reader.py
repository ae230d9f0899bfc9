"""Telemetry as frames: one polars frame per record kind, read lazily from the files of a run.

    Telemetry(run / "telemetry").frame("agg_round")

The files of a run (one JSONL per process) are streamed line by line; a line of another kind is told
by its end and not decoded, and rows are packed into columns every `CHUNK`, so that memory holds the
asked kinds only. Columns: `flame.telemetry.columns`.

- A torn last line (a process was killed while it wrote) is dropped and counted in `torn`.
- Any other line that can't be read is an error that names file, line and reason: a report made from
  half of the records would be worse than none.
- `compact` writes the same frames to Parquet. They are used instead of the lines as long as the
  manifest says that they were made from files of this size.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from flame.telemetry.columns import KINDS, columns, schema
from flame.telemetry.records import VERSION

CHUNK = 50_000
"""Rows that are held as Python objects at a time, per kind."""

COMPACTED = "compacted"
"""Folder of the Parquet files, beside the JSONL files."""

_MARK = b'"kind":"'


class TelemetryError(Exception):
    """Telemetry that can't be read. str() names the file and what is wrong with it."""


class Telemetry:
    """The records of one run. path: its `telemetry` folder. Raises TelemetryError where there is none."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.files = sorted(path.glob("*.jsonl"))
        self.torn: set[str] = set()
        """Names of files whose last line was dropped."""
        self._frames: dict[str, pl.DataFrame] = {}
        self._compacted = _manifest(path)
        if not self.files and self._compacted is None:
            raise TelemetryError(f"no telemetry: `{path}` has no *.jsonl file")

    def frame(self, kind: str) -> pl.DataFrame:
        """All records of `kind`, in file order; no row when there are none. Raises KeyError for an unknown kind."""
        self.load(kind)
        return self._frames[kind]

    def load(self, *kinds: str) -> None:
        """Read several kinds in one pass."""
        wanted = [kind for kind in kinds if kind not in self._frames]
        if self._compacted is not None:
            self._frames |= {kind: _read_parquet(self.path, kind) for kind in wanted}
        elif wanted:
            self._frames |= self._read(wanted)

    def kinds(self) -> list[str]:
        """The kinds that have rows. Reads everything."""
        self.load(*KINDS)
        return [kind for kind in KINDS if self._frames[kind].height]

    def _read(self, kinds: list[str]) -> dict[str, pl.DataFrame]:
        packs = {kind: _Pack(kind) for kind in kinds}
        for file in self.files:
            for number, line in self._lines(file, frozenset(kinds)):
                kind = line["record"].get("kind")
                if kind in packs:
                    packs[kind].add(line)
                elif kind not in KINDS:
                    raise TelemetryError(f"`{file}` line {number}: unknown record kind `{kind}`")
        return {kind: pack.frame() for kind, pack in packs.items()}

    def _lines(self, file: Path, kinds: frozenset[str]) -> Iterator[tuple[int, dict[str, Any]]]:
        """Decoded lines that are of `kinds`, or that can't be told from their end."""
        with file.open("rb") as stream:
            for number, text in enumerate(stream, 1):
                if _told(text) in KINDS.keys() - kinds:
                    continue
                try:
                    yield number, _decode(text)
                except ValueError as error:
                    if not text.endswith(b"\n"):
                        self.torn.add(file.name)
                        return
                    raise TelemetryError(f"`{file}` line {number} is corrupt: {error}") from None


def compact(run: Path) -> Path:
    """Write the run's telemetry as Parquet, one file per kind, beside the lines (which stay). Returns the folder.

    The manifest is written last: a compaction that was cut short is not used.
    """
    telemetry = Telemetry(run / "telemetry")
    folder = telemetry.path / COMPACTED
    folder.mkdir(exist_ok=True)
    (folder / "manifest.json").unlink(missing_ok=True)
    telemetry.load(*KINDS)
    for kind in KINDS:
        telemetry.frame(kind).write_parquet(folder / f"{kind}.parquet")
    (folder / "manifest.json").write_bytes(orjson.dumps({"v": VERSION, "bytes": _sizes(telemetry.files)}))
    return folder


def _sizes(files: Iterable[Path]) -> dict[str, int]:
    return {file.name: file.stat().st_size for file in files}


def _manifest(path: Path) -> dict[str, Any] | None:
    """The manifest of a complete compaction of these very files; None where there is none."""
    file = path / COMPACTED / "manifest.json"
    if not file.is_file():
        return None
    manifest: dict[str, Any] = orjson.loads(file.read_bytes())
    current = _sizes(path.glob("*.jsonl"))
    fresh = manifest["v"] == VERSION and (not current or current == manifest["bytes"])
    return manifest if fresh else None


def _read_parquet(path: Path, kind: str) -> pl.DataFrame:
    file = path / COMPACTED / f"{kind}.parquet"
    known = schema(kind)
    if not file.is_file():
        return pl.DataFrame(schema=known)
    frame = pl.read_parquet(file)
    missing = [pl.lit(None, dtype).alias(name) for name, dtype in known.items() if name not in frame.columns]
    return frame.with_columns(missing).select(list(known))


def _told(text: bytes) -> str | None:
    """The kind of a line as its end tells (the writer puts `kind` last); None where it doesn't."""
    if not text.endswith(b'"}}\n'):
        return None
    start = text.rfind(_MARK)
    return text[start + len(_MARK) : -4].decode("utf-8", "replace") if start >= 0 else None


def _decode(text: bytes) -> dict[str, Any]:
    """One line. Raises ValueError, in words, when it isn't one of ours."""
    line = orjson.loads(text)
    if not isinstance(line, dict) or not isinstance(line.get("record"), dict):
        raise ValueError("not a telemetry line (no `record`)")
    if line.get("v") != VERSION:
        raise ValueError(f"schema version `{line.get('v')}`, this reader knows `{VERSION}`")
    return line


class _Pack:
    """Rows of one kind on their way into columns."""

    def __init__(self, kind: str) -> None:
        self._kind, self._columns = kind, columns(kind)
        self._rows: list[dict[str, Any]] = []
        self._done: list[pl.DataFrame] = []

    def add(self, line: dict[str, Any]) -> None:
        self._rows.append(line)
        if len(self._rows) >= CHUNK:
            self._pack()

    def frame(self) -> pl.DataFrame:
        self._pack()
        return pl.concat(self._done)

    def _pack(self) -> None:
        rows, self._rows = self._rows, []
        self._done.append(pl.DataFrame([self._series(column, rows) for column in self._columns]))

    def _series(self, column: Any, rows: list[dict[str, Any]]) -> pl.Series:
        try:
            return pl.Series(column.name, [column.take(row) for row in rows], dtype=column.dtype, strict=True)
        except (TypeError, AttributeError, pl.exceptions.PolarsError) as error:
            first = str(error).strip().splitlines()[0]
            raise TelemetryError(f"record `{self._kind}`: field `{column.name}` has a value of a wrong type: {first}") from None
