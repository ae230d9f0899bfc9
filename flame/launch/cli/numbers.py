"""What an option that is a number can't be, where no condition looks at it."""

from math import isfinite

import typer


def over_zero(value: float) -> float:
    """The number, if it is finite and over 0."""
    if not (isfinite(value) and value > 0):
        raise typer.BadParameter(f"{value} is no finite number over 0.")
    return value
