"""Long data over short packets, without IO: split on one side, put together on the other.

    "FLCH" | version, 1 | sender, 8 | sequence, 8 | index, 4 | count, 4 | length, 4 | checksum, 4 | piece

A chunk says which message it belongs to (sender and sequence number), which piece it is of how many,
how long the piece is and a CRC over all of that. Pieces may come in any order and any number of
times: what arrived is kept by its index, and what is complete is remembered, so that a message is
handed on once. Sender is a digest of run, node and incarnation, so no two processes share one.

Nothing grows without bound: a buffer of unfinished messages is limited in number, bytes and age, and
what it gives up is reported, not forgotten silently. Whoever sent it sends it again (`runtime.transport.session`).
Nothing is reserved for chunks that are only announced.
"""

import struct
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from zlib import crc32

VERSION = 1
MAGIC = b"FLCH"
OPEN_MESSAGES = 256
OPEN_BYTES = 1 << 30
OPEN_SECONDS = 60.0
REMEMBERED = 16_384
CHUNK_COST = 256
"""Bytes of memory that keeping a chunk costs beside its piece: empty pieces must count too."""

_FIELDS = struct.Struct(">4sB8sQIII")
_CHECKSUM = struct.Struct(">I")
HEADER = _FIELDS.size + _CHECKSUM.size
"""Bytes that a chunk has beyond its piece."""

MessageId = tuple[bytes, int]


class ChunkError(ValueError):
    """A chunk that can't be used. str() says why."""


@dataclass(slots=True)
class Chunk:
    """One piece of a message."""

    id: MessageId
    index: int
    count: int
    piece: memoryview


def sender_of(run: str, name: str, incarnation: str) -> bytes:
    """8 bytes that name a sending process."""
    return blake2b("\0".join((run, name, incarnation)).encode(), digest_size=8).digest()


def split(data: bytes, sender: bytes, sequence: int, piece_bytes: int) -> Iterator[bytes]:
    """`data` as chunks with at most `piece_bytes` of it each; one chunk for empty data."""
    count = max(1, -(-len(data) // piece_bytes))
    view = memoryview(data)
    for index in range(count):
        piece = view[index * piece_bytes : (index + 1) * piece_bytes]
        head = _FIELDS.pack(MAGIC, VERSION, sender, sequence, index, count, len(piece))
        yield b"".join((head, _CHECKSUM.pack(crc32(piece, crc32(head))), piece))


def parse(frame: bytes) -> Chunk:
    """The chunk in `frame`. Raises ChunkError for anything else."""
    if len(frame) < HEADER:
        raise ChunkError(f"{len(frame)} bytes are too few for a chunk")
    magic, version, sender, sequence, index, count, length = _FIELDS.unpack_from(frame)
    if magic != MAGIC:
        raise ChunkError(f"a chunk starts with {MAGIC!r}, this with {magic!r}")
    if version != VERSION:
        raise ChunkError(f"chunk format {version}, this program speaks {VERSION}; install one version of flame-fl everywhere")
    piece = memoryview(frame)[HEADER:]
    if len(piece) != length:
        raise ChunkError(f"truncated chunk {index + 1} of {count}: {len(piece)} of {length} bytes")
    if _CHECKSUM.unpack_from(frame, _FIELDS.size)[0] != crc32(piece, crc32(frame[: _FIELDS.size])):
        raise ChunkError(f"wrong checksum in chunk {index + 1} of {count}")
    if index >= count:
        raise ChunkError(f"chunk {index + 1} of {count}")
    return Chunk((sender, sequence), index, count, piece)


@dataclass(slots=True)
class _Open:
    """An unfinished message."""

    count: int
    since: float
    pieces: dict[int, memoryview] = field(default_factory=dict)
    nbytes: int = 0


@dataclass(slots=True)
class Reassembly:
    """Chunks in, whole data out, once each.

    messages, nbytes, seconds: bounds of what is unfinished. remembered: finished ids kept to know a
    late duplicate by.
    """

    messages: int = OPEN_MESSAGES
    nbytes: int = OPEN_BYTES
    seconds: float = OPEN_SECONDS
    remembered: int = REMEMBERED
    _open: OrderedDict[MessageId, _Open] = field(default_factory=OrderedDict)
    _held: int = 0
    _done: OrderedDict[MessageId, None] = field(default_factory=OrderedDict)

    def take(self, chunk: Chunk, now: float) -> bytes | None:
        """The data that `chunk` completes, None if it completes none. now: seconds of any clock that doesn't go back.

        Raises ChunkError when the chunk contradicts one before it, and when it made the buffer give up
        an unfinished message; that one may be this chunk's.
        """
        if chunk.id in self._done:
            return None
        entry = self._open.get(chunk.id)
        if entry is None:
            entry = self._open[chunk.id] = _Open(chunk.count, now)
        if entry.count != chunk.count:
            raise ChunkError(f"a message of {entry.count} chunks got one of {chunk.count}")
        if chunk.index not in entry.pieces:
            entry.pieces[chunk.index] = chunk.piece
            entry.nbytes += len(chunk.piece) + CHUNK_COST
            self._held += len(chunk.piece) + CHUNK_COST
        if len(entry.pieces) == entry.count:
            return self._finish(chunk.id, entry)
        self._make_room(now)
        return None

    @property
    def unfinished(self) -> tuple[int, int]:
        """How many messages are unfinished, and the bytes of memory that they take."""
        return len(self._open), self._held

    def _finish(self, key: MessageId, entry: _Open) -> bytes:
        self._drop(key)
        self._done[key] = None
        if len(self._done) > self.remembered:
            self._done.popitem(last=False)
        return b"".join([entry.pieces[index] for index in range(entry.count)])

    def _make_room(self, now: float) -> None:
        """Give up the oldest while a bound is passed. Raises ChunkError naming what was given up."""
        given_up = []
        while self._open:
            key, oldest = next(iter(self._open.items()))
            over = len(self._open) > self.messages or self._held > self.nbytes
            if not over and now - oldest.since <= self.seconds:
                break
            self._drop(key)
            given_up.append(f"{len(oldest.pieces)} of {oldest.count} chunks after {now - oldest.since:.1f} s")
        if given_up:
            raise ChunkError(f"gave up {len(given_up)} unfinished: {'; '.join(given_up[:5])}")

    def _drop(self, key: MessageId) -> None:
        self._held -= self._open.pop(key).nbytes
