"""Telemetry as frames: one polars frame per record kind, read lazily from the files of a run.

    Telemetry(run / "telemetry").frame("agg_round")

The files of a run (one JSONL per process) are streamed line by line. A line's kind is told by its
end, so that those of other kinds are not decoded; the lines of a kind are parsed a few megabytes at a
time, so that memory holds the asked kinds only, as columns (`flame.telemetry.columns`).

- A torn last line (a process was killed while it wrote) is dropped and counted in `torn`.
- Any other line that can't be read is an error that names file, line and reason: a report made from
  half of the records would be worse than none.
- `compact` writes the same frames to Parquet. They are used instead of the lines as long as the
  manifest says that they were made from files of this size.
"""

from collections.abc import Iterable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from flame.telemetry.columns import KINDS, columns, nested, schema
from flame.telemetry.records import VERSION

CHUNK_BYTES = 8 << 20
"""Text that is held at a time, per kind."""

COMPACTED = "compacted"
"""Folder of the Parquet files, beside the JSONL files."""

_MARK, _END = b'"kind":"', b'"}}\n'


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
        done: dict[str, list[pl.DataFrame]] = {kind: [pl.DataFrame(schema=schema(kind))] for kind in kinds}
        for file in self.files:
            packs = {kind: _Pack(kind, file) for kind in kinds}
            for kind, line in self._lines(file):
                if kind in packs:
                    packs[kind].add(line)
            for kind, pack in packs.items():
                done[kind] += pack.frames()
        return {kind: pl.concat(frames) for kind, frames in done.items()}

    def _lines(self, file: Path) -> Iterator[tuple[str, bytes]]:
        """The lines of a file with their kinds. One whose end doesn't tell is decoded to find out."""
        with file.open("rb") as stream:
            for number, line in enumerate(stream, 1):
                kind = _told(line)
                if kind not in KINDS:
                    try:
                        kind = _kind_of(line)
                    except ValueError as error:
                        if not line.endswith(b"\n"):
                            self.torn.add(file.name)
                            return
                        raise TelemetryError(f"`{file}` line {number} is corrupt: {error}") from None
                yield kind, line


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


def _told(line: bytes) -> str:
    """The kind of a whole line as its end tells (the writer puts `kind` last), or nothing that is one."""
    if not line.endswith(_END):
        return ""
    return line[line.rfind(_MARK) + len(_MARK) : -len(_END)].decode("utf-8", "replace")


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


class _Pack:
    """Lines of one kind, from one file, on their way into columns."""

    def __init__(self, kind: str, file: Path) -> None:
        self._kind, self._file = kind, file
        self._lines: list[bytes] = []
        self._held = 0
        self._done: list[pl.DataFrame] = []

    def add(self, line: bytes) -> None:
        self._lines.append(line)
        self._held += len(line)
        if self._held >= CHUNK_BYTES:
            self._pack()

    def frames(self) -> list[pl.DataFrame]:
        self._pack()
        return self._done

    def _pack(self) -> None:
        lines, self._lines, self._held = self._lines, [], 0
        if not lines:
            return
        try:
            frame = _parse(self._kind, lines)
        except _Unreadable:
            raise self._named(lines) from None
        self._done.append(frame.select(column.of_line for column in columns(self._kind)))

    def _named(self, lines: list[bytes]) -> TelemetryError:
        """The error about the first line that can't be parsed; the halves are tried until it is alone."""
        while len(lines) > 1:
            half = lines[: len(lines) // 2]
            lines = lines[len(half) :] if _is_readable(self._kind, half) else half
        with self._file.open("rb") as stream:
            number = next(number for number, line in enumerate(stream, 1) if line == lines[0])
        return TelemetryError(f"`{self._file}` line {number} is corrupt: {_reason(self._kind, lines[0])}")


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
