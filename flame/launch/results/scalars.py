"""A run's scalars as TensorBoard events.

The step of an evaluation is its version, that of a close its cycle; the wall time of an event is its stamp, so that
TensorBoard's time axis is virtual time. What is absent has no event.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from flame.analysis.learned import Learned
from flame.config.errors import ConfigError

EVALUATED = ("accuracy", "loss", "mcc", "passes", "bytes", "uploads")
CLOSED = ("variance", "grad_norm", "pool", "in_flight", "n_eff", "goal", "concurrency")

Scalar = tuple[str, float, int, float]
"""Tag, value, step, seconds."""


def scalars(learned: Learned) -> Iterator[Scalar]:
    """Every scalar, tag by tag."""
    yield from _column(learned.curve, "eval", "version", EVALUATED)
    yield from _column(learned.rounds, "close", "cycle", CLOSED)


def _column(frame: pl.DataFrame, group: str, step: str, names: tuple[str, ...]) -> Iterator[Scalar]:
    for name in names:
        for value, at, stamp in frame.select(name, step, "stamp_ns").drop_nulls().iter_rows():
            yield f"{group}/{name}", float(value), at, stamp / 1e9


def write_scalars(learned: Learned, folder: Path) -> int:
    """Write them as one file of events; returns how many. Raises ConfigError where the library isn't installed."""
    try:
        from tensorboardX import SummaryWriter
    except ModuleNotFoundError:
        raise ConfigError("the extra `tensorboard` isn't installed", "pip install 'flame-fl[tensorboard]'") from None
    writer: Any = SummaryWriter(str(folder))
    count = 0
    for tag, value, step, seconds in scalars(learned):
        writer.add_scalar(tag, value, step, walltime=seconds)
        count += 1
    writer.close()
    return count
