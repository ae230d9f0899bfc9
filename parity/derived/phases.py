"""The measured phases of jobs, as numbers: a job's record has them as JSON text, which is decoded once for all who ask."""

import polars as pl

from parity.evidence import Run

MEASURED = ("fetch", "decode", "queue", "to_device", "compute", "to_host", "hold", "encode", "send")
"""Phases that a job may have."""


def phases_of(run: Run) -> pl.DataFrame:
    """A column of seconds for each phase, null where it wasn't measured; rows as those of trainer_round. For `run.derived`."""
    told = run.frame("trainer_round", "phases")
    decoded = pl.col("phases").str.json_decode(pl.Struct(dict.fromkeys(MEASURED, pl.Float64())))
    return told.select(decoded).unnest("phases")


def with_phases(run: Run, *names: str) -> pl.DataFrame:
    """These columns of trainer_round, and the phases of each."""
    return run.frame("trainer_round", *names).hstack(run.derived(phases_of))
