"""Client sessions: the stretches in which a trainer could be used, and what came of each.

A session that the run's start or end cut has an unknown length: `cut` says so. An assign that was handed out to a trainer
that was away is in none.
"""

import polars as pl

from flame.analysis.learned import Learned
from flame.analysis.presence import available, each
from flame.core.time import SECOND

SCHEMA = {"trainer": pl.String(), "begin_ns": pl.Int64(), "end_ns": pl.Int64()}


def sessions(learned: Learned) -> pl.DataFrame:
    """A row a session: trainer, begin_s, end_s, length_s, cut, assigns handed out in it, uploads of these that counted."""
    end = learned.end
    rows = list(each(available(learned.run.condition, end)))
    held = pl.DataFrame(rows, schema=SCHEMA, orient="row").sort("begin_ns", "trainer").with_row_index("session")
    counts = _assigns(learned, held).group_by("session").agg(assigns=pl.len(), uploads=pl.col("taken").sum())
    table = held.join(counts, on="session", how="left", maintain_order="left")
    return table.select(
        "trainer", begin_s=pl.col("begin_ns") / SECOND, end_s=pl.col("end_ns") / SECOND,
        length_s=(pl.col("end_ns") - pl.col("begin_ns")) / SECOND, cut=(pl.col("begin_ns") == 0) | (pl.col("end_ns") == end),
        assigns=pl.col("assigns").fill_null(0).cast(pl.Int64), uploads=pl.col("uploads").fill_null(0).cast(pl.Int64),
    )  # fmt: skip


def _assigns(learned: Learned, held: pl.DataFrame) -> pl.DataFrame:
    """(session, taken): each assign with the session in which it was handed out, and whether its upload was accepted."""
    frame = learned.run.telemetry.frame
    taken = frame("accepted").filter("accepted")["id"].unique().to_list()
    assigns = frame("dispatch").select("id", "trainer", "stamp_ns", taken=pl.col("id").is_in(taken)).sort("stamp_ns")
    found = assigns.join_asof(held, left_on="stamp_ns", right_on="begin_ns", by="trainer", check_sortedness=False)
    return found.filter(pl.col("stamp_ns") < pl.col("end_ns"))
