"""The records of a run as files that other programs read: Parquet or CSV, one a kind."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import orjson
import polars as pl

from flame.telemetry.rundir import RunDir


def write_tables(run: RunDir, more: Mapping[str, pl.DataFrame], out: Path, form: Literal["parquet", "csv"]) -> list[Path]:
    """A file for each kind that has records, and for each table of `more`; returns them. In CSV what is nested is JSON."""
    frames = {kind: run.telemetry.frame(kind) for kind in run.telemetry.kinds()} | dict(more)
    out.mkdir(parents=True, exist_ok=True)
    written = []
    for name, frame in frames.items():
        file = out / f"{name}.{form}"
        if form == "parquet":
            frame.write_parquet(file)
        else:
            flat(frame).write_csv(file)
        written.append(file)
    return written


def flat(frame: pl.DataFrame) -> pl.DataFrame:
    """With columns of text instead of lists and structures."""
    nested = [name for name, dtype in frame.schema.items() if dtype.is_nested()]
    return frame.with_columns(
        pl.Series(name, [None if value is None else orjson.dumps(value).decode() for value in frame[name].to_list()], pl.String)
        for name in nested
    )
