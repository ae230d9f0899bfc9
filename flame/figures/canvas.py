"""One panel at column width, and the files that it becomes.

Files are functions of what is drawn: no date, no version of a library, no random identifier. The epoch is told to
the font subsetter through the one variable that it knows.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from flame.figures import looks

EPOCH = {"SOURCE_DATE_EPOCH": "0"}


def panel(height: float = 2.2) -> tuple[Figure, Axes]:
    """A figure of one column's width with one panel. height: inches."""
    looks.use()
    figure, axes = plt.subplots(figsize=(looks.COLUMN, height))
    return figure, axes


def legend_above(figure: Figure, axes: Axes, columns: int = 2, extra: Sequence[tuple[Any, str]] = ()) -> None:
    """A legend over the panel, which hides nothing."""
    handles, labels = axes.get_legend_handles_labels()
    handles, labels = [*handles, *(handle for handle, _ in extra)], [*labels, *(label for _, label in extra)]
    if handles:
        figure.legend(handles, labels, loc="outside upper center", ncols=columns, columnspacing=1.2)


def whiskers(mean: Any, low: Any, high: Any) -> list[Any]:
    """How far they reach below and above a mean. The mean of equal numbers may be one bit beside them, and no whisker is negative."""
    return [np.maximum(mean - low, 0.0), np.maximum(high - mean, 0.0)]


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write `name`.pdf and `name`.png; returns both."""
    pdf, png = folder / f"{name}.pdf", folder / f"{name}.png"
    with _dated():
        figure.savefig(pdf, metadata={"CreationDate": None, "Creator": "flame", "Producer": "flame", "Title": name})
        figure.savefig(png, metadata={"Software": "flame"})
    plt.close(figure)
    return [pdf, png]


@contextmanager
def _dated() -> Iterator[None]:
    before = {key: os.environ.get(key) for key in EPOCH}
    os.environ.update(EPOCH)
    try:
        yield
    finally:
        for key, value in before.items():
            if value is None:
                del os.environ[key]
            else:
                os.environ[key] = value
