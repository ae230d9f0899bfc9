"""One run: what it has learned, and what it had spent by then.

Passes count at the due of their assign, messages of assigns at its dispatch, messages of updates at its due. What the
session layer sends again to a new incarnation is left out, as in rung Cm. Passes and bytes need telemetry `full`.
"""

from dataclasses import dataclass
from functools import cached_property

import polars as pl

from flame.analysis import curve as curves
from flame.core.time import SECOND
from flame.telemetry.rundir import RunDir

RESEND = "resend"
SPENT = ("passes", "down_bytes", "up_bytes", "compute_s")
"""What is summed up over stamps."""


@dataclass(frozen=True, slots=True)
class Spent:
    """Up to an instant; None where the run's telemetry doesn't say. compute_s: measured."""

    passes: int | None
    down: int | None
    up: int | None
    compute_s: float | None = None

    @property
    def both(self) -> int | None:
        """Bytes in both directions."""
        return None if self.down is None or self.up is None else self.down + self.up


NOTHING = Spent(None, None, None)


class Learned:
    """One finished run: its curve, and its costs over stamps."""

    def __init__(self, run: RunDir) -> None:
        self.run = run
        run.telemetry.load("agg_round", "agg_eval", "dispatch", "trainer_round", "comm", "run_meta", "run_end")
        self.rounds = run.telemetry.frame("agg_round").sort("_seq")
        self.evaluations = run.telemetry.frame("agg_eval").sort("_seq")
        self._full = run.world.level == "full"

    @cached_property
    def end(self) -> int:
        """The last close or evaluation, ns."""
        stamps: list[int] = [*self.rounds["stamp_ns"], *self.evaluations["stamp_ns"]]
        return max(stamps, default=0)

    @cached_property
    def device(self) -> str:
        """Where its trainers computed: `cpu`, `cuda:0`."""
        return ", ".join(sorted(set(self.run.telemetry.frame("run_meta")["device"]))) or "-"

    @cached_property
    def curve(self) -> pl.DataFrame:
        """A row an evaluation: commits, uploads, time_s and wall_s, what was spent by then, accuracy, loss."""
        rounds = self.rounds.filter("committed").select(pl.col("model_version") + 1, "accepts", "wall_s")
        held = self.evaluations.join(rounds, left_on="version", right_on="model_version", how="left", maintain_order="left")
        held = held.select(
            "version", "stamp_ns", pl.col("version").alias("commits"), pl.col("accepts").alias("uploads"),
            (pl.col("stamp_ns") / SECOND).alias("time_s"), "wall_s", "accuracy", "loss", "mcc",
        )  # fmt: skip
        for name in SPENT:
            held = self._with_spent(held, name)
        return held.with_columns((pl.col("down_bytes") + pl.col("up_bytes")).alias("bytes"))

    def _with_spent(self, held: pl.DataFrame, name: str) -> pl.DataFrame:
        """With a column of what was spent by each evaluation; null where the telemetry doesn't say."""
        amounts = self._by_stamp(name) if self._full else None
        if amounts is None or amounts[name].null_count():
            return held.with_columns(pl.lit(None, pl.Float64).alias(name))
        total = amounts.sort("at").with_columns(pl.col(name).cum_sum())
        joined = held.sort("stamp_ns", maintain_order=True).join_asof(total, left_on="stamp_ns", right_on="at")
        return joined.drop("at", strict=False).with_columns(pl.col(name).fill_null(0))

    def _by_stamp(self, name: str) -> pl.DataFrame:
        """(at, name): each amount that was spent, with its instant."""
        if name in ("passes", "compute_s"):
            return self._jobs.select("at", name)
        return self._messages.filter(pl.col("direction") == name.removesuffix("_bytes")).select("at", pl.col("bytes").alias(name))

    @cached_property
    def _jobs(self) -> pl.DataFrame:
        jobs = self.run.telemetry.frame("trainer_round").unique("id", maintain_order=True)
        measured = pl.col("phases").str.json_path_match("$.compute").cast(pl.Float64)
        return jobs.select("id", "passes", measured.alias("compute_s")).join(self._assigns, on="id").rename({"due_ns": "at"})

    @cached_property
    def _messages(self) -> pl.DataFrame:
        messages = self.run.telemetry.frame("comm").filter(pl.col("payload") != RESEND).unique(["direction", "id"])
        at = pl.when(pl.col("direction") == "down").then("stamp_ns").otherwise("due_ns")
        return messages.join(self._assigns, on="id").select(at.alias("at"), "direction", pl.col("message_bytes").alias("bytes"))

    @cached_property
    def _assigns(self) -> pl.DataFrame:
        return self.run.telemetry.frame("dispatch").select("id", "stamp_ns", "due_ns")

    def spent(self, until: int | None = None) -> Spent:
        """What was spent up to `until` ns in stamps; None: up to the end."""
        if not self._full:
            return NOTHING
        by_then = pl.col("at") <= (self.end if until is None else until)
        messages, jobs = self._messages.filter(by_then), self._jobs.filter(by_then)
        down, up = (int(messages.filter(pl.col("direction") == way)["bytes"].sum()) for way in ("down", "up"))
        measured = jobs["compute_s"]
        return Spent(int(jobs["passes"].sum()), down, up, None if measured.null_count() else float(measured.sum()))

    def reached(self, accuracy: float) -> int | None:
        """The stamp of the first evaluation at or over `accuracy`; None: there is none."""
        return curves.reached(self.evaluations, accuracy)

    def cost_to(self, accuracy: float) -> Spent:
        """What was spent when it first came to `accuracy`; nothing is known of one that never did."""
        at = self.reached(accuracy)
        return NOTHING if at is None else self.spent(at)

    def sustained(self) -> float | None:
        """Mean accuracy of the evaluations of the last commits."""
        return curves.sustained(self.evaluations)

    def peak(self) -> float | None:
        """Its highest accuracy."""
        return curves.peak(self.evaluations)

    def loss_drop(self, wide: int = 10) -> float | None:
        """How far the loss fell, from the mean of the first evaluations to that of the last."""
        return curves.loss_drop(self.evaluations, wide)

    @cached_property
    def laps(self) -> pl.DataFrame:
        """Where laps end: a row for each that did, with commits, uploads, time_s and wall_s of its last commit."""
        commits = self.rounds.filter("committed").select(
            lap="round", commits=pl.col("model_version") + 1, uploads="accepts", time_s=pl.col("stamp_ns") / SECOND, wall_s="wall_s"
        )
        ends = self.run.telemetry.frame("run_end")["round"]
        opened = ends[-1] if ends.len() else self.rounds["round"].max()
        return commits.group_by("lap", maintain_order=True).last().filter(pl.col("lap") < (opened or 0))
