"""What the rungs over accepted updates share: one value, or several, of each update by its id."""

from parity.evidence import Run, Window


def by_id(run: Run, window: Window, column: str) -> dict[str, object]:
    """`id 12` -> its value, of the updates that were taken in the cycles of the window."""
    rows = window.in_cycles(run.accepts).select("id", column)
    return {f"id {key}": value for key, value in rows.iter_rows()}


def several_by_id(run: Run, window: Window, *columns: str) -> dict[str, object]:
    """`id 12` -> its values by name."""
    rows = window.in_cycles(run.accepts).select("id", *columns)
    return {f"id {row.pop('id')}": row for row in rows.iter_rows(named=True)}
