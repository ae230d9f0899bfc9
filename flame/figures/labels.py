"""Labels of horizontal lines, put where no curve is."""

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Annotation, Text
from matplotlib.transforms import Bbox

PLACES = (0, 8, 4, 2, 6, 1, 7, 3, 5)
"""Eighths of the width, those first that are looked at first."""
AWAY = 1.5
"""Points between a label and its line."""
MARGIN = 3.0
"""Points kept clear around it: markers are that large."""


def label_line(figure: Figure, axes: Axes, height: float, wordings: Sequence[str], curves: Sequence[Line2D]) -> Annotation:
    """Write the first of `wordings` that finds room at the line at `height`: above it or below, where it meets the fewest curves and texts.

    Call it when all else is drawn: what is measured is the figure as it will be.
    """
    others = list(axes.texts)
    label = axes.annotate("", (0, height), xycoords=("axes fraction", "data"), xytext=(2, AWAY), textcoords="offset points", fontsize=6)
    figure.draw_without_rendering()

    def met(choice: tuple[str, tuple[float, bool]]) -> int:
        words, place = choice
        label.set_text(words)
        return _met(figure, label, place, curves, others)

    words, place = min(product(wordings, _places()), key=met)
    label.set_text(words)
    _put(label, place, height)
    return label


def _places() -> Iterator[tuple[float, bool]]:
    """(share of the width, whether above)."""
    for above in (True, False):
        for eighth in PLACES:
            yield eighth / 8, above


def _put(label: Annotation, place: tuple[float, bool], height: float) -> None:
    x, above = place
    label.xy = (x, height)
    label.set_horizontalalignment("left" if x == 0 else "right" if x == 1 else "center")
    label.set_verticalalignment("bottom" if above else "top")
    label.xyann = ({0.0: 2.0, 1.0: -2.0}.get(x, 0.0), AWAY if above else -AWAY)


def _met(figure: Figure, label: Annotation, place: tuple[float, bool], curves: Sequence[Line2D], others: Sequence[Text]) -> int:
    """How many curves and texts the label would meet at a place."""
    _put(label, place, label.xy[1])
    box = label.get_window_extent().padded(MARGIN * figure.dpi / 72)
    return sum(_crosses(line, box) for line in curves) + sum(box.overlaps(text.get_window_extent()) for text in others)


def _crosses(line: Line2D, box: Bbox) -> bool:
    path = line.get_transform().transform_path(line.get_path())
    points = np.asarray(path.vertices)
    return bool(len(points)) and (any(box.contains(x, y) for x, y in points) or path.intersects_bbox(box, filled=False))
