"""Several seeds of one condition as one curve: the mean, and a band from the lowest to the highest.

Seeds are evaluated at different instants. Each is read between its evaluations by a straight line, at every x that any
of them has, and only where all of them are: the mean never mixes three seeds here and two there.
"""

from collections.abc import Sequence

import numpy as np
import polars as pl

SCHEMA = {"x": pl.Float64(), "mean": pl.Float64(), "low": pl.Float64(), "high": pl.Float64()}


def band(curves: Sequence[pl.DataFrame], x: str, y: str) -> pl.DataFrame:
    """(x, mean, low, high) over the range that all curves have; rows in which x or y is absent are left out."""
    known = [
        curve.select(pl.col(x).cast(pl.Float64), pl.col(y).cast(pl.Float64)).drop_nulls().unique(x, keep="last").sort(x) for curve in curves
    ]
    if not known or any(not curve.height for curve in known):
        return pl.DataFrame(schema=SCHEMA)
    low, high = max(curve[x].item(0) for curve in known), min(curve[x].item(-1) for curve in known)
    places = np.unique(np.concatenate([curve[x].to_numpy() for curve in known]))
    places = places[(places >= low) & (places <= high)]
    values = np.array([np.interp(places, curve[x].to_numpy(), curve[y].to_numpy()) for curve in known])
    return pl.DataFrame({"x": places, "mean": values.mean(0), "low": values.min(0), "high": values.max(0)}, schema=SCHEMA)
