"""What finished runs have learned, and what it cost: one Markdown row a run.

    python bench/efficiency.py RUN_DIR... [--to 0.80 --to 0.84] [--window 10]

Everything stands at an instant in stamps, so that a simulated and a real run of one condition have equal rows:

  passes       forward passes of finished jobs, each at the due of its assign
  MB down, up  messages of assigns at their dispatch, of updates at their due; 10^6 bytes. What the session layer
               sends again to a new incarnation is left out, as in rung Cm
  sustained    mean accuracy of the evaluations of the last 100 commits, of the last third where there are fewer than 300
  to A         the first evaluation at or over A: stamps in s, and passes and MB (both ways) spent by then
  loss drop    mean loss of the first w evaluations less that of the last w; w is `--window`, or half of them
               where there are fewer; per 10^6 passes, and per GB (10^9 bytes, both ways), of the whole run
  K, C         those in force, lowest..highest where they changed

`-` is absent: never reached, not evaluated, not finite, or not written (passes and bytes need telemetry `full`).
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import polars as pl

from flame.analysis import curve
from flame.analysis.learned import Learned
from flame.analysis.productivity import cost_to, productivity
from flame.core.time import in_seconds
from flame.telemetry.reader import TelemetryError
from flame.telemetry.rundir import RunDir

ABSENT = "-"

Cell = tuple[str, str]
"""A column's title and what a run has there."""


def cells(learned: Learned, targets: Sequence[float], window: int) -> Iterator[Cell]:
    """The row of one run."""
    run, evaluations, whole, gain = learned.run, learned.evaluations, learned.spent(), productivity(learned, window)
    accuracy, verdict = evaluations["accuracy"], run.verdict
    yield "run", run.label
    yield "K", _range(learned.rounds["goal"])
    yield "C", _range(learned.rounds["concurrency"])
    yield "commits", str(learned.rounds["committed"].sum())
    yield "virtual s", number(in_seconds(learned.end))
    yield "passes", number(whole.passes)
    yield "MB down", number(_mega(whole.down))
    yield "MB up", number(_mega(whole.up))
    for name, value in (
        ("first", accuracy[0] if accuracy.len() else None), ("last", curve.last(evaluations)),
        ("peak", learned.peak()), ("sustained", learned.sustained()),
    ):  # fmt: skip
        yield name, ABSENT if value is None else f"{value:.3f}"
    for target, time_s, passes, spent, _ in cost_to(learned, targets).iter_rows():
        yield f"s to {target:g}", number(time_s)
        yield f"passes to {target:g}", number(passes)
        yield f"MB to {target:g}", number(_mega(spent))
    yield "loss drop", number(gain.loss_drop)
    yield "per 10^6 passes", number(gain.per_million_passes)
    yield "per GB", number(gain.per_gb)
    yield "verdict", verdict.verdict if verdict else "none yet"


def number(value: float | None) -> str:
    """Four digits that count; whole from a thousand on."""
    if value is None:
        return ABSENT
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _mega(count: int | None) -> float | None:
    return None if count is None else count / 1e6


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
