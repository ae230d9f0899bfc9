"""What finished runs have learned, and what it cost: one Markdown row a run.

    python bench/efficiency.py RUN_DIR... [--to 0.80 --to 0.84] [--window 10]

Everything stands at an instant in stamps, so that a simulated and a real run of one condition have equal rows:

  passes       forward passes of finished jobs, each at the due of its assign
  MB down, up  messages of assigns at their dispatch, of updates at their due; 10^6 bytes. What the session layer
               sends again to a new incarnation is left out, as in rung Cm
  sustained    mean accuracy of the evaluations of the last 100 commits, of all where there are fewer
  to A         the first evaluation at or over A: stamps in s, and passes and MB (both ways) spent by then
  loss drop    mean loss of the first w evaluations less that of the last w; w is `--window`, or half of them
               where there are fewer; per 10^6 passes, and per GB (10^9 bytes, both ways), of the whole run
  K, C         those in force, lowest..highest where they changed

`-` is absent: never reached, not evaluated, not finite, or not written (passes and bytes need telemetry `full`).
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean

import polars as pl

from flame.core.time import in_seconds
from flame.telemetry.reader import TelemetryError
from flame.telemetry.rundir import RunDir

SUSTAINED = 100
RESEND = "resend"
ABSENT = "-"


@dataclass(frozen=True, slots=True)
class Spent:
    """Up to an instant; None where the run's telemetry doesn't say."""

    passes: int | None
    down: int | None
    up: int | None

    @property
    def both(self) -> int | None:
        """Bytes in both directions."""
        return None if self.down is None or self.up is None else self.down + self.up


class Learned:
    """One finished run: its curve, and its costs over stamps."""

    def __init__(self, run: RunDir) -> None:
        self.run = run
        run.telemetry.load("agg_round", "agg_eval", "dispatch", "trainer_round", "comm")
        self.rounds = run.telemetry.frame("agg_round").sort("_seq")
        self.evaluations = run.telemetry.frame("agg_eval").sort("_seq")
        self._full = run.world.level == "full"

    @cached_property
    def end(self) -> int:
        """The last close or evaluation, ns."""
        stamps: list[int] = [*self.rounds["stamp_ns"], *self.evaluations["stamp_ns"]]
        return max(stamps, default=0)

    @cached_property
    def _passes(self) -> pl.DataFrame:
        jobs = self.run.telemetry.frame("trainer_round").select("id", "passes").unique("id")
        return jobs.join(self._assigns, on="id").select(pl.col("due_ns").alias("at"), "passes")

    @cached_property
    def _bytes(self) -> pl.DataFrame:
        messages = self.run.telemetry.frame("comm").filter(pl.col("payload") != RESEND).unique(["direction", "id"])
        at = pl.when(pl.col("direction") == "down").then("stamp_ns").otherwise("due_ns")
        return messages.join(self._assigns, on="id").select(at.alias("at"), "direction", pl.col("message_bytes").alias("bytes"))

    @cached_property
    def _assigns(self) -> pl.DataFrame:
        return self.run.telemetry.frame("dispatch").select("id", "stamp_ns", "due_ns")

    def spent(self, until: int | None = None) -> Spent:
        """What was spent up to `until` ns in stamps; None: up to the end."""
        if not self._full:
            return Spent(None, None, None)
        by_then = pl.col("at") <= (self.end if until is None else until)
        messages = self._bytes.filter(by_then)
        down, up = (int(messages.filter(pl.col("direction") == way)["bytes"].sum()) for way in ("down", "up"))
        return Spent(int(self._passes.filter(by_then)["passes"].sum()), down, up)

    def reached(self, accuracy: float) -> int | None:
        """The stamp of the first evaluation at or over `accuracy`; None: there is none."""
        return self.evaluations.filter(pl.col("accuracy") >= accuracy)["stamp_ns"].min()  # type: ignore[return-value]

    def sustained(self) -> float | None:
        """Mean accuracy of the evaluations of the last commits."""
        evaluations = self.evaluations
        last = evaluations.filter(pl.col("version") > pl.col("version").max() - SUSTAINED)["accuracy"]
        return fmean(last.to_list()) if last.len() and not last.null_count() else None

    def loss_drop(self, window: int) -> float | None:
        """How far the loss fell, from the mean of the first evaluations to that of the last."""
        losses = self.evaluations["loss"].to_list()
        wide = min(window, len(losses) // 2)
        ends = [*losses[:wide], *losses[len(losses) - wide :]]
        return None if not wide or None in ends else fmean(ends[:wide]) - fmean(ends[wide:])


Cell = tuple[str, str]
"""A column's title and what a run has there."""


def cells(learned: Learned, targets: Sequence[float], window: int) -> Iterator[Cell]:
    """The row of one run."""
    run, accuracy, whole = learned.run, learned.evaluations["accuracy"], learned.spent()
    drop, verdict = learned.loss_drop(window), run.verdict
    yield "run", run.label
    yield "K", _range(learned.rounds["goal"])
    yield "C", _range(learned.rounds["concurrency"])
    yield "commits", str(learned.rounds["committed"].sum())
    yield "virtual s", number(in_seconds(learned.end))
    yield "passes", number(whole.passes)
    yield "MB down", number(_over(whole.down, 1e6))
    yield "MB up", number(_over(whole.up, 1e6))
    for name, value in (
        ("first", accuracy[0] if accuracy.len() else None), ("last", accuracy[-1] if accuracy.len() else None),
        ("peak", max(accuracy.drop_nulls().to_list(), default=None)), ("sustained", learned.sustained()),
    ):  # fmt: skip
        yield name, ABSENT if value is None else f"{value:.3f}"
    for target in targets:
        at = learned.reached(target)
        then = Spent(None, None, None) if at is None else learned.spent(at)
        yield f"s to {target:g}", number(None if at is None else in_seconds(at))
        yield f"passes to {target:g}", number(then.passes)
        yield f"MB to {target:g}", number(_over(then.both, 1e6))
    yield "loss drop", number(drop)
    yield "per 10^6 passes", number(_ratio(drop, _over(whole.passes, 1e6)))
    yield "per GB", number(_ratio(drop, _over(whole.both, 1e9)))
    yield "verdict", verdict.verdict if verdict else "none yet"


def number(value: float | None) -> str:
    """Four digits that count; whole from a thousand on."""
    if value is None:
        return ABSENT
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _over(value: float | None, unit: float) -> float | None:
    return None if value is None else value / unit


def _ratio(one: float | None, other: float | None) -> float | None:
    return one / other if one is not None and other else None


def _range(column: pl.Series) -> str:
    values = column.unique().sort().to_list()
    return ABSENT if not values else f"{values[0]}" if len(values) == 1 else f"{values[0]}..{values[-1]}"


def table(rows: Sequence[Sequence[Cell]]) -> str:
    """Markdown; all rows have the same columns."""
    titles = [title for title, _ in rows[0]]
    lines = [titles, ["---", *["---:"] * (len(titles) - 2), "---"], *([value for _, value in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main(arguments: Sequence[str] | None = None, show: Callable[[str], object] = print) -> int:
    """Print the table; 2 where a directory can't be read."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN_DIR")
    parser.add_argument("--to", type=float, action="append", default=[], metavar="A", help="an accuracy; repeatable")
    parser.add_argument("--window", type=int, default=10, metavar="W", help="evaluations at either end of the loss drop")
    asked = parser.parse_args(arguments)
    try:
        rows = [list(cells(Learned(RunDir(path)), asked.to, asked.window)) for path in asked.runs]
    except TelemetryError as error:
        show(f"{error}\nhint: give directories of runs, such as runs/*_sim")
        return 2
    show(table(rows))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
