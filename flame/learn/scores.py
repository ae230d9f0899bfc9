"""What an evaluation says: loss, accuracy, recall per class and Matthews' coefficient.

Recall per class and Matthews' coefficient show a collapse to a single class, which accuracy on
unbalanced labels hides.
"""

from math import sqrt

import numpy as np
from numpy.typing import NDArray

from flame.core.tasks import EvalResult
from flame.learn.params import Vector


def scores(losses: Vector, predicted: NDArray[np.integer], labels: NDArray[np.integer], classes: int) -> EvalResult:
    """Scores of `predicted` (n,) against `labels` (n,), with per-sample `losses` (n,)."""
    table = np.zeros((classes, classes), np.int64)  # [true, predicted]
    np.add.at(table, (labels, predicted), 1)
    rows, hits = table.sum(axis=1), np.diagonal(table)
    recall = [int(hit) / int(row) if row else None for hit, row in zip(hits, rows, strict=True)]
    loss = float(np.add.reduce(losses, dtype=np.float64) / len(losses))
    return EvalResult(loss, int(hits.sum()) / len(labels), len(labels), recall, matthews(table))


def matthews(table: NDArray[np.int64]) -> float:
    """Matthews' coefficient of a confusion table [true, predicted] (Gorodkin 2004); 0 when one side is a single class."""
    total, hits = int(table.sum()), int(np.trace(table))
    true, predicted = [int(n) for n in table.sum(axis=1)], [int(n) for n in table.sum(axis=0)]
    covariance = hits * total - sum(t * p for t, p in zip(true, predicted, strict=True))
    spread = (total**2 - sum(p * p for p in predicted)) * (total**2 - sum(t * t for t in true))
    return covariance / sqrt(spread) if spread else 0.0
