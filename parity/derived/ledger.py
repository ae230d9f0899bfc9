"""The in-flight ledger of one run, read back from its telemetry.

A row is one assign: it begins with a dispatch and ends exactly once, by the close of the cycle that
took its update, by a reject, or by a void (an intrusion that gave it up, or its node's planned
departure). `seq` is the order in
which the aggregator emitted its records, so "before" is exact even where stamps are equal.

Rows are columns of a frame, in the order of their dispatch; what is told in words is told of the few that are wrong.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl

from parity.evidence import Run

ROW = {"id": "id", "trainer": "trainer", "_seq": "seq", "cycle": "cycle", "stamp_ns": "stamp_ns", "due_ns": "due_ns"}
"""Columns of a dispatch that a row has, and their names in it."""

NEVER = 1 << 62
"""A seq that is after all others."""


@dataclass(frozen=True, slots=True)
class Ledger:
    """All rows of a run, and what refers to no row.

    rows: id, trainer, seq, cycle, stamp_ns, due_ns; accepts: how often it was accepted, accept_seq: the first time; ends: how
    often it ended (more than once is a fault), end_seq: the earliest, end_cycle: of the first that is listed, closed: whether
    a cycle has it. free_seq: the earliest seq at which its node may have been free again, null where it never was: an
    accepted update holds its slot at least up to the next close, whichever cycle it is in.
    ends: id, ending (close, reject, void), seq, cycle of each end of a row. twice: ids, each time they were dispatched again.
    strays: ends of rows that were never dispatched, in words.
    """

    rows: pl.DataFrame
    ends: pl.DataFrame
    twice: list[int]
    strays: list[str]

    @property
    def open(self) -> pl.DataFrame:
        """Rows that have not ended."""
        return self.rows.filter(pl.col("ends") == 0)

    def successions(self) -> pl.DataFrame:
        """The rows, each with the one before it of its trainer (`before_id`, `before_cycle`, null for a first one).

        overlaps: it was dispatched while that one was open.
        """
        before = {f"before_{name}": pl.col(name).shift(1).over("trainer") for name in ("id", "cycle", "free_seq")}
        rows = self.rows.sort("seq", maintain_order=True).with_columns(**before)
        busy = pl.col("before_id").is_not_null() & (pl.col("before_free_seq").fill_null(NEVER) > pl.col("seq"))
        return rows.with_columns(overlaps=busy)


def ledger_of(run: Run) -> Ledger:
    """The ledger of `run`, from its dispatch, accepted, agg_round, intrusion and peer records."""
    assigns = run.frame("dispatch", *ROW).sort("_seq").rename(ROW)
    dispatched = assigns.unique("id", keep="first", maintain_order=True)
    releases = run.frame("accepted", "id", "_seq", "cycle", "accepted")
    ends = _ends(run, releases)
    taken = releases.filter("accepted").group_by("id").agg(accepts=pl.len(), accept_seq=pl.first("_seq"))
    rows = dispatched.join(taken, on="id", how="left", maintain_order="left").with_columns(pl.col("accepts").fill_null(0))
    known = ends.join(dispatched, on="id", how="semi", maintain_order="left")
    known = pl.concat([known, _departed(run, rows, known)])
    rows = _ended(rows, known)
    rows = rows.with_columns(free_seq=_free(run, rows))
    twice = assigns.filter(~pl.col("id").is_first_distinct())["id"].to_list()
    return Ledger(rows, known, twice, _strays(dispatched, releases, ends))


def _ends(run: Run, releases: pl.DataFrame) -> pl.DataFrame:
    """The ends of rows, known or not: id, ending, seq, cycle."""
    rejects = releases.filter(~pl.col("accepted")).select("id", pl.lit("reject").alias("ending"), seq="_seq", cycle="cycle")
    closes = run.members.select("id", pl.lit("close").alias("ending"), seq="_seq", cycle="cycle")
    voided = run.frame("intrusion", "voided", "_seq", "cycle").filter(pl.col("voided").list.len() > 0).explode("voided")
    voids = voided.select(pl.lit("void").alias("ending"), id="voided", seq="_seq", cycle="cycle").select(closes.columns)
    return pl.concat([rejects, closes, voids])


def _departed(run: Run, rows: pl.DataFrame, ends: pl.DataFrame) -> pl.DataFrame:
    """A node that leaves as planned takes its open row with it, unless the update was accepted before."""
    left = run.frame("peer", "node", "_seq", "up", "planned").filter(~pl.col("up") & pl.col("planned")).with_row_index("turn")
    held = rows.filter(pl.col("accepts") == 0).join(ends, on="id", how="anti")
    gone = held.join(left.select("turn", at="_seq", trainer="node"), on="trainer").filter(pl.col("seq") < pl.col("at"))
    first = gone.sort("turn", maintain_order=True).unique("id", keep="first", maintain_order=True)
    return first.select("id", pl.lit("void").alias("ending"), seq="at", cycle="cycle")


def _ended(rows: pl.DataFrame, ends: pl.DataFrame) -> pl.DataFrame:
    """The rows with how they ended."""
    each = ends.group_by("id").agg(
        ends=pl.len(), end_seq=pl.col("seq").min(), end_cycle=pl.col("cycle").first(), closed=(pl.col("ending") == "close").any()
    )
    joined = rows.join(each, on="id", how="left", maintain_order="left")
    return joined.with_columns(pl.col("ends").fill_null(0), pl.col("closed").fill_null(False))


def _free(run: Run, rows: pl.DataFrame) -> pl.Series:
    """When each row's node may have been free again."""
    closes = run.rounds["_seq"].sort().to_numpy()
    after = np.searchsorted(closes, rows["accept_seq"].fill_null(NEVER).to_numpy(), side="right")
    next_close = pl.Series(np.append(closes, NEVER)[after], dtype=pl.Int64)
    free = pl.select(pl.when(rows["accepts"] > 0).then(next_close).otherwise(rows["end_seq"])).to_series()
    return free.replace(NEVER, None)


def _strays(dispatched: pl.DataFrame, releases: pl.DataFrame, ends: pl.DataFrame) -> list[str]:
    """Releases and ends of what was never dispatched, in words."""
    named = releases.with_columns(ending=pl.lit("release"))
    unknown = (
        one.join(dispatched, on="id", how="anti", maintain_order="left") for one in (named, ends.filter(pl.col("ending") != "reject"))
    )
    return [
        f"cycle {cycle}: {ending} of id {key}, which was never dispatched"
        for frame in unknown
        for cycle, ending, key in frame.select("cycle", "ending", "id").iter_rows()
    ]
