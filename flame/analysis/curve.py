"""A learning curve and what is read off it. The one home of `sustained accuracy`.

A curve is the frame of a run's evaluations in order, with the columns version, stamp_ns, accuracy, loss. An accuracy or
a loss that is not finite is null there; what would be made of one is None.
"""

from statistics import fmean

import polars as pl

SUSTAINED = 100
"""Commits at the end over which accuracy is a mean; never more than the last third of them."""


def window(curve: pl.DataFrame) -> int:
    """Over how many of the last commits accuracy is sustained: a hundred, or a third of all where that is less."""
    last = curve["version"].max()
    return max(1, min(SUSTAINED, last // 3)) if isinstance(last, int) else 0


def sustained(curve: pl.DataFrame) -> float | None:
    """Mean accuracy of the evaluations of the last commits (`window`)."""
    late = curve.filter(pl.col("version") > pl.col("version").max() - window(curve))["accuracy"]
    return fmean(late.to_list()) if late.len() and not late.null_count() else None


def peak(curve: pl.DataFrame) -> float | None:
    """The highest accuracy of any evaluation, however short it lasted."""
    return max(curve["accuracy"].drop_nulls().to_list(), default=None)


def last(curve: pl.DataFrame) -> float | None:
    """The accuracy of the last evaluation."""
    value: float | None = curve["accuracy"][-1] if curve.height else None
    return value


def reached(curve: pl.DataFrame, accuracy: float) -> int | None:
    """The stamp (ns) of the first evaluation at or over `accuracy`."""
    stamp = curve.filter(pl.col("accuracy") >= accuracy)["stamp_ns"].min()
    return stamp if isinstance(stamp, int) else None


def loss_drop(curve: pl.DataFrame, wide: int = 10) -> float | None:
    """Mean loss of the first `wide` evaluations less that of the last (of half of them, where there are fewer)."""
    losses: list[float | None] = curve["loss"].to_list()
    span = min(wide, len(losses) // 2)
    ends = [*losses[:span], *losses[len(losses) - span :]]
    known = [loss for loss in ends if loss is not None]
    return fmean(known[:span]) - fmean(known[span:]) if span and len(known) == len(ends) else None
