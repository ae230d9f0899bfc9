"""Tables for people and for spreadsheets."""

from pathlib import Path

import polars as pl

from flame.folders import closed

ABSENT = "-"


def markdown(table: pl.DataFrame, digits: int = 4) -> str:
    """As Markdown, all rows and columns; absent is `-`."""
    with pl.Config(
        tbl_formatting="MARKDOWN", tbl_hide_column_data_types=True, tbl_hide_dataframe_shape=True, tbl_rows=-1, tbl_cols=-1,
        tbl_width_chars=-1, fmt_str_lengths=200, float_precision=None, tbl_cell_numeric_alignment="RIGHT",
    ):  # fmt: skip
        return str(table.select(_text(table[name], digits) for name in table.columns))


def _text(column: pl.Series, digits: int) -> pl.Series:
    """Numbers with so many digits that count, whole from there on."""
    if not column.dtype.is_float():
        return column.cast(pl.String).fill_null(ABSENT) if column.null_count() else column
    told = [ABSENT if value is None else f"{value:.0f}" if abs(value) >= 10 ** (digits - 1) else f"{value:.{digits}g}" for value in column]
    return pl.Series(column.name, told, pl.String)


def into(folder: Path) -> Path:
    """The folder, made where it isn't there. Raises ConfigError where it can't be, or where nothing may be written into it."""
    check_into(folder)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def check_into(folder: Path) -> None:
    """Raises ConfigError where nothing could be written into a folder of that name; makes nothing."""
    fault = closed(folder, "--out")
    if fault is not None:
        raise fault


def write_csv(table: pl.DataFrame, file: Path) -> Path:
    """As CSV; absent is empty."""
    into(file.parent)
    table.write_csv(file)
    return file
