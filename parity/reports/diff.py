"""`flame diff RUN RUN`: two released sequences side by side, and the story of their first difference.

Exit 0: they are equal. 1: they part. 2: there is nothing to compare.
"""

import argparse
import sys
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path

import orjson
from rich.console import Console
from rich.table import Table
from rich.text import Text

from flame.telemetry.reader import TelemetryError
from flame.telemetry.rundir import RunDir
from parity.derived.released import Released, Row, View, released
from parity.engine import pair_of
from parity.evidence import Pair, Run
from parity.explainer.explain import explain, names_of
from parity.explainer.parting import Parting, parting
from parity.explainer.story import Names, Story
from parity.reports.terminal import console, told_story

AROUND = 4
"""How many rows before and after the first difference are shown."""


def main(argv: Sequence[str] | None = None) -> int:
    """Walk two runs. Returns the exit code."""
    options = parser().parse_args(argv)
    try:
        runs = pair_of(*(RunDir(path) for path in options.runs))
        pair = Pair(Run("real", runs.real), Run("sim", runs.sim))
        view = View.of(pair, options.logical)
        sequences = released(pair, view)
        story = explain(pair, logical=options.logical)
    except TelemetryError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if options.json:
        print(orjson.dumps(story.plain() if story else None, option=orjson.OPT_INDENT_2).decode())
    else:
        _show(console(), pair, view, sequences, story, options)
    return 1 if story else 0


def parser() -> argparse.ArgumentParser:
    """The arguments of `flame diff`."""
    parser = argparse.ArgumentParser(prog="flame diff", description="Walk the released sequences of two runs side by side.")
    parser.add_argument("runs", nargs=2, type=Path, metavar="RUN", help="a run directory")
    parser.add_argument("--logical", action="store_true", help="leave out everything of the clock: stamps, dues, ages, durations")
    parser.add_argument("--all", action="store_true", help="print every row, not only those around the first difference")
    parser.add_argument("--around", type=int, default=AROUND, metavar="N", help=f"rows before and after the difference ({AROUND})")
    parser.add_argument("--json", action="store_true", help="print the story as JSON, null where there is none")
    return parser


def _show(
    out: Console, pair: Pair, view: View, sequences: tuple[Released, Released], story: Story | None, options: argparse.Namespace
) -> None:
    names = names_of(pair)
    out.print(Text("diff  ", style="bold").append(_seen(view, options.logical), style="dim"))
    for name, run, sequence in zip(names, pair.runs, sequences, strict=True):
        out.print(Text(f"  {name:6} {run.dir.label}  {len(sequence.rows)} rows"), soft_wrap=True)
        if sequence.note is not None:
            out.print(Text(f"! {sequence.note}: rows are told by telemetry", style="bold yellow"), soft_wrap=True)
    found = parting(*sequences, view)
    if found is not None or options.all:
        out.print()
        out.print(_table(names, view, sequences, found, options))
    if story is None:
        followed = "" if any(sequence.note for sequence in sequences) else ", and what followed from each"
        out.print(Text(f"equal: {len(sequences[0].rows)} rows{followed}", style="green"))
        return
    for line in told_story(story):
        out.print(line)


def _seen(view: View, logical: bool) -> str:
    if logical:
        return "without anything of the clock"
    return "stamps are shown and not compared: arrival order measures them" if view.logical else "stamps included"


def _table(names: Names, view: View, sequences: tuple[Released, Released], found: Parting | None, options: argparse.Namespace) -> Table:
    """Rows side by side; `=` equal, `≠` not, `→` equal rows that led to other effects."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    for title, justify in (("row", "right"), ("cycle", "right"), (names[0], "left"), ("", "left"), (names[1], "left")):
        table.add_column(title, justify=justify, overflow="fold")  # type: ignore[arg-type]
    parted = found.index if found is not None and found.index is not None else None
    for number, (real, sim) in enumerate(zip_longest(*(sequence.rows for sequence in sequences))):
        if options.all or (parted is not None and abs(number - parted) <= options.around):
            mark = _mark(number, parted, found, real, sim, view)
            one, two = (_text(row, options.logical) for row in (real, sim))
            table.add_row(str(number), str((real or sim).cycle), one, mark, two, style="" if mark == "=" else "bold")
    return table


def _mark(number: int, parted: int | None, found: Parting | None, real: Row | None, sim: Row | None, view: View) -> str:
    if number == parted and found is not None and found.what == "effects":
        return "→"
    same = real is not None and sim is not None and view.same_key(real.key, sim.key) and real.content == sim.content
    return "=" if same else "≠"


def _text(row: Row | None, logical: bool) -> str:
    if row is None:
        return "-"
    step = "" if row.step is None else f"  step {row.step}"
    return f"{row.name if logical else row}{step}"
