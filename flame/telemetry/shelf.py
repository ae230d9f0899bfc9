"""Where the frame of one record kind is kept: as it is while it is short, packed when it grows long.

Telemetry repeats itself (names, ordinals, stamps that differ by little), so that a long frame is some twenty times
smaller as compressed Parquet than as columns. It is packed a piece at a time, in memory, and unpacked by the columns
that somebody asks for. So a gigabyte of lines costs a few megabytes, and a few more while a question is answered.
"""

from io import BytesIO

import polars as pl

PIECE_BYTES = 4 << 20
"""Columns of this size make a piece that is packed."""


class Shelf:
    """The rows of one kind, in the order in which they were put."""

    def __init__(self, schema: dict[str, pl.DataType]) -> None:
        self._packed: list[bytes] = []
        self._open = pl.DataFrame(schema=schema)

    def put(self, frame: pl.DataFrame) -> None:
        """Add rows, which have the columns of the schema."""
        self._open = pl.concat([self._open, frame]) if self._open.height else frame
        if self._open.estimated_size() >= PIECE_BYTES:
            self._packed.append(_packed(self._open))
            self._open = self._open.clear()

    def take(self, *names: str) -> pl.DataFrame:
        """All rows; of the columns that are named, or of all."""
        columns = list(names) or self._open.columns
        pieces = [pl.read_parquet(piece, columns=columns).select(columns) for piece in self._packed]
        return pl.concat([*pieces, self._open.select(columns)])


def _packed(frame: pl.DataFrame) -> bytes:
    into = BytesIO()
    frame.write_parquet(into, compression="lz4", statistics=False)
    return into.getvalue()
