"""Where measured seconds went: the phases of trainers and of the aggregator, or the coarse ones of a whole run.

Sums are sums, and an aggregate over nothing is absent. A simulation measures what it computes, not what it models.
"""

from collections.abc import Iterator

import orjson
import polars as pl

from flame.telemetry.rundir import RunDir

SOURCES = {"trainer": "trainer_round", "aggregator": "agg_round"}
SCHEMA = {"who": pl.String(), "phase": pl.String(), "seconds": pl.Float64()}


def measured(run: RunDir) -> pl.DataFrame:
    """Each measured phase: who, phase, seconds; of the run as a whole, where neither side has any."""
    rows = [(who, phase, took) for who, kind in SOURCES.items() for phase, took in _of(run, kind)]
    if not rows:
        steps = run.telemetry.frame("step_timing").select("function", "duration_s")
        rows = [("run", function, took) for function, took in steps.iter_rows()]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def _of(run: RunDir, kind: str) -> Iterator[tuple[str, float]]:
    for text in run.telemetry.frame(kind)["phases"].drop_nulls():
        yield from orjson.loads(text).items()


def phases(run: RunDir) -> pl.DataFrame:
    """A row a phase, the longest first: n, sum, its share of that side's sum, median and 95th percentile of one."""
    took = pl.col("seconds")
    table = measured(run).group_by("who", "phase").agg(
        n=pl.len(), total_s=took.sum(), median_s=took.median(), p95_s=took.quantile(0.95, "linear")
    )  # fmt: skip
    whole = pl.col("total_s").sum().over("who")
    share = pl.when(whole > 0).then(pl.col("total_s") / whole)
    return table.with_columns(share=share).sort(["who", "total_s", "phase"], descending=[False, True, False])
