"""Telemetry as frames: one polars frame per record kind, read lazily from the files of a run.

    Telemetry(run / "telemetry").frame("dispatch", "id", "trainer")

The files of a run (one JSONL per process) are streamed, some megabytes at a time. A line's kind is told by its end,
so that those of other kinds are not decoded; the lines of a kind are parsed together, into columns
(`flame.telemetry.columns`), which are kept packed where they are many (`flame.telemetry.shelf`). So memory holds
the asked kinds only, and a frame is as large as the columns that are named.

- A torn last line (a process was killed while it wrote) is dropped and counted in `torn`.
- Any other line that can't be read is an error that names file, line and reason: a report made from
  half of the records would be worse than none.
- `compact` writes the same frames to Parquet. They are used instead of the lines as long as the
  manifest says that they were made from files of this size.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from flame.telemetry.columns import KINDS, columns, nested, schema
from flame.telemetry.records import VERSION
from flame.telemetry.shelf import Shelf

CHUNK_BYTES = 16 << 20
"""Text that is held at a time."""

COMPACTED = "compacted"
"""Folder of the Parquet files, beside the JSONL files."""

_MARK = b'"kind":"'
_KINDS = {b'"kind":"%s"}}\n' % kind.encode(): kind for kind in KINDS}
"""How a whole line ends (the writer puts `kind` last) -> its kind."""


class TelemetryError(Exception):
    """Telemetry that can't be read. str() names the file and what is wrong with it."""


class Telemetry:
    """The records of one run. path: its `telemetry` folder. Raises TelemetryError where there is none."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.files = sorted(path.glob("*.jsonl"))
        self.torn: set[str] = set()
        """Names of files whose last line was dropped."""
        self._shelves: dict[str, Shelf] = {}
        self._compacted = _manifest(path)
        if not self.files and self._compacted is None:
            raise TelemetryError(f"no telemetry: `{path}` has no *.jsonl file")

    def frame(self, kind: str, *names: str) -> pl.DataFrame:
        """All records of `kind`, in file order; no row when there are none. Raises KeyError for an unknown kind.

        names: the columns that are wanted, where there may be many rows; without any, all of them.
        """
        self.load(kind)
        return self._shelves[kind].take(*names)

    def load(self, *kinds: str) -> None:
        """Read several kinds in one pass."""
        wanted = [kind for kind in kinds if kind not in self._shelves]
        shelves = {kind: Shelf(schema(kind)) for kind in wanted}
        if self._compacted is not None:
            for kind, shelf in shelves.items():
                _put_parquet(shelf, self.path, kind)
        elif wanted:
            self._read(shelves)
        self._shelves |= shelves

    def kinds(self) -> list[str]:
        """The kinds that have rows. Reads everything."""
        self.load(*KINDS)
        return [kind for kind in KINDS if self.frame(kind, columns(kind)[0].name).height]

    def _read(self, shelves: dict[str, Shelf]) -> None:
        for file in self.files:
            for lines in self._lines(file):
                for kind in shelves.keys() & lines.keys():
                    shelves[kind].put(_columnar(kind, lines[kind], file))

    def _lines(self, file: Path) -> Iterator[dict[str, list[bytes]]]:
        """The lines of a file by their kinds, some megabytes at a time."""
        read = 0
        with file.open("rb") as stream:
            while lines := stream.readlines(CHUNK_BYTES):
                yield self._sorted(file, lines, read)
                read += len(lines)

    def _sorted(self, file: Path, lines: list[bytes], read: int) -> dict[str, list[bytes]]:
        """Kind -> its lines. One whose end doesn't tell is decoded to find out. read: lines of the file before these."""
        found: dict[str, list[bytes]] = defaultdict(list)
        for number, line in enumerate(lines, read + 1):
            kind = _KINDS.get(line[line.rfind(_MARK) :])
            if kind is None:
                try:
                    kind = _kind_of(line)
                except ValueError as error:
                    if not line.endswith(b"\n"):
                        self.torn.add(file.name)
                        break
                    raise TelemetryError(f"`{file}` line {number} is corrupt: {error}") from None
            found[kind].append(line)
        return found


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


def _put_parquet(shelf: Shelf, path: Path, kind: str) -> None:
    """Put what a compaction has of `kind`, a row group at a time; fields that it doesn't know are absent."""
    file = path / COMPACTED / f"{kind}.parquet"
    if not file.is_file():
        return
    known, kept = schema(kind), pl.read_parquet_schema(file)
    missing = [pl.lit(None, dtype).alias(name) for name, dtype in known.items() if name not in kept]
    for frame in pl.scan_parquet(file).with_columns(missing).select(list(known)).collect_batches(maintain_order=True):
        shelf.put(frame)


def _kind_of(line: bytes) -> str:
    """The kind of a line, by decoding it. Raises ValueError, in words, when it isn't one of ours."""
    plain = orjson.loads(line)
    if not isinstance(plain, dict) or not isinstance(plain.get("record"), dict):
        raise ValueError("not a telemetry line (no `record`)")
    if plain.get("v") != VERSION:
        raise ValueError(f"schema version `{plain.get('v')}`, this reader knows `{VERSION}`")
    kind = plain["record"].get("kind")
    if kind not in KINDS:
        raise ValueError(f"unknown record kind `{kind}`")
    return str(kind)


def _columnar(kind: str, lines: list[bytes], file: Path) -> pl.DataFrame:
    """The frame of lines of one kind, of that file. Raises TelemetryError for one that can't be parsed."""
    try:
        frame = _parse(kind, lines)
    except _Unreadable:
        raise _named(kind, lines, file) from None
    return frame.select(column.of_line for column in columns(kind))


def _named(kind: str, lines: list[bytes], file: Path) -> TelemetryError:
    """The error about the first line that can't be parsed; the halves are tried until it is alone."""
    while len(lines) > 1:
        half = lines[: len(lines) // 2]
        lines = lines[len(half) :] if _is_readable(kind, half) else half
    with file.open("rb") as stream:
        number = next(number for number, line in enumerate(stream, 1) if line == lines[0])
    return TelemetryError(f"`{file}` line {number} is corrupt: {_reason(kind, lines[0])}")


class _Unreadable(Exception):
    """Lines that are not what their kind says."""


def _parse(kind: str, lines: list[bytes]) -> pl.DataFrame:
    """The nested frame of whole lines. Raises _Unreadable."""
    try:
        frame = pl.read_ndjson(BytesIO(b"".join(lines)), schema=nested(kind))
    except pl.exceptions.PolarsError as error:
        raise _Unreadable(str(error)) from None
    if frame.height != len(lines) or not (frame["v"] == VERSION).all(ignore_nulls=False):
        raise _Unreadable
    return frame


def _is_readable(kind: str, lines: list[bytes]) -> bool:
    try:
        _parse(kind, lines)
    except _Unreadable:
        return False
    return True


def _reason(kind: str, line: bytes) -> str:
    """What is wrong with a line, in words."""
    try:
        _kind_of(line)
        _parse(kind, [line])
    except ValueError as error:
        return str(error)
    except _Unreadable as error:
        return f"record `{kind}` has a value of a wrong type: {str(error).splitlines()[0]}"
    raise AssertionError("a line was readable after all")
