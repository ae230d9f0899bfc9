"""The journal: every step of the machines of one process, written before its effects leave.

A line is `{"step": {seq, node, now, event, released, effects}, "chain": ...}`. `chain` is a running
hash, so a lost or changed line shows. Tensors stand as `{"blob": digest}`; their bytes are in the
run's `blobs/`. Nothing measured is in here: what a machine sees is what is written, and feeding it to
fresh machines must give the same effects (`flame.runtime.books.replay`).

The first line is a header with what the machines were made from. A torn last line is dropped.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import orjson

from flame.core.effects import Effect
from flame.core.events import Event, TimerKey
from flame.core.tensor import Tensor
from flame.learn.params import Layout
from flame.runtime.books.blobs import Blobs
from flame.telemetry.records import Level

SCHEMA = 2
"""Of header and steps. 2: the header has a layout."""


@dataclass(slots=True)
class Header:
    """What the machines of a process were made from.

    init: digest of theta. layout: its tensors. level: of the records that they make. blobs: whether the tensors' bytes are kept.
    """

    run: str
    incarnation: str
    fingerprint: str
    init: str
    bins: int
    nodes: list[str]
    level: Level
    blobs: bool
    layout: Layout
    schema: int = SCHEMA


def plain_tensor(keep: Callable[[Tensor], str]) -> Callable[[Any], dict[str, str]]:
    """A serialiser's fallback that writes a tensor as its digest, and hands it to `keep`."""

    def fallback(value: Any) -> dict[str, str]:
        if isinstance(value, Tensor):
            return {"blob": keep(value)}
        raise TypeError(f"a journal can't hold a {type(value).__name__}")

    return fallback


def dump(value: Any) -> bytes:
    """The canonical bytes of events and effects, tensors by digest."""
    return orjson.dumps(value, default=_digest_only)


def _digest_only(value: Any) -> dict[str, str]:
    if isinstance(value, Tensor):
        return {"blob": value.digest}
    raise TypeError(f"a journal can't hold a {type(value).__name__}")


@dataclass(frozen=True, slots=True)
class JournalPlace:
    """How far a journal was written: bytes, steps, and the chain up to there."""

    size: int
    seq: int
    chain: bytes


class Journal:
    """Appends the steps of one process. Raises OSError when the disk refuses, which ends the run."""

    def __init__(self, path: Path, header: Header, blobs: Blobs | None, *, buffered: bool, place: JournalPlace | None = None) -> None:
        """place: where to go on in a journal that is there; what stands after it is cut off."""
        path.parent.mkdir(parents=True, exist_ok=True)
        if place is not None:
            os.truncate(path, place.size)
        self._file = path.open("ab", buffering=(1 << 20) if buffered else 0)
        self._fallback = plain_tensor(blobs.put) if blobs else _digest_only
        if place is None:
            self.seq, self._chain = 0, b""
            self._file.write(orjson.dumps({"header": header}, option=orjson.OPT_APPEND_NEWLINE))
        else:
            self.seq, self._chain = place.seq, place.chain

    def place(self) -> JournalPlace:
        """How far it is written; all of it is on the disk then."""
        self._file.flush()
        os.fsync(self._file.fileno())
        return JournalPlace(self._file.tell(), self.seq, self._chain)

    def append(self, node: str, now: int, event: Event, released: Sequence[TimerKey], effects: Sequence[Effect] | None) -> None:
        """Write one step. effects: None when the event was illegal, which is the last step of a run."""
        step = {"seq": self.seq, "node": node, "now": now, "event": event, "released": released, "effects": effects}
        line = orjson.dumps(step, default=self._fallback)
        self._chain = blake2b(self._chain + line, digest_size=8).digest()
        self._file.write(b'{"step":' + line + b',"chain":"' + self._chain.hex().encode() + b'"}\n')
        self.seq += 1

    def close(self) -> None:
        """Flush and close."""
        self._file.close()


class Blank:
    """The journal of a run without one."""

    def __init__(self, seq: int = 0) -> None:
        self.seq = seq

    def place(self) -> JournalPlace:
        """It has no bytes."""
        return JournalPlace(0, self.seq, b"")

    def append(self, node: str, now: int, event: Event, released: Sequence[TimerKey], effects: Sequence[Effect] | None) -> None:
        """Forget it."""
        self.seq += 1

    def close(self) -> None:
        """Nothing to do."""


class CorruptJournal(Exception):
    """A journal that can't be read: it was changed after it was written, or another version wrote it."""


def read(path: Path) -> tuple[dict[str, Any], Iterator[dict[str, Any]]]:
    """The header and the steps of a journal, streamed.

    Raises CorruptJournal, naming file and line, where it has another schema, or a line isn't JSON or breaks the chain;
    a torn last line is dropped.
    """
    file = path.open("rb")
    try:
        header: dict[str, Any] = orjson.loads(file.readline())["header"]
    except (orjson.JSONDecodeError, KeyError, TypeError) as error:
        file.close()
        raise CorruptJournal(f"{path.name} has no header: {error}") from None
    if header.get("schema") != SCHEMA:
        file.close()
        raise CorruptJournal(
            f"{path.name} has schema {header.get('schema')}, and this version reads {SCHEMA}; "
            "read it with the version that wrote it, or run its condition again"
        )
    return header, _steps(path, file)


def _steps(path: Path, file: Any) -> Iterator[dict[str, Any]]:
    chain = b""
    with file:
        for number, line in enumerate(file, start=2):
            if not line.endswith(b"\n"):
                return
            start, stop = len(b'{"step":'), line.rfind(b',"chain":"')
            chain = blake2b(chain + line[start:stop], digest_size=8).digest()
            try:
                row = orjson.loads(line)
                if row["chain"] != chain.hex():
                    raise CorruptJournal(f"{path.name}, line {number}: the hash chain breaks here; the file was changed or lines are lost")
                yield row["step"]
            except (orjson.JSONDecodeError, KeyError, TypeError) as error:
                raise CorruptJournal(f"{path.name}, line {number}: not a step ({error})") from None
