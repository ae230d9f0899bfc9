"""`flame parity` and `expt_scripts/run_parity.py`: which runs, how judged, what is printed.

Exit 0: every enforced rung passed. 1: one failed. 2: the checker broke, or there was nothing to compare.
Reports go to stdout, everything else to stderr.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from flame.answers import yes
from flame.telemetry.reader import TelemetryError
from flame.telemetry.rundir import RunDir, RunPair, is_run, pair_up, survey
from parity.engine import Options, RefusedError, Report, check, pair_of
from parity.floor import NONE, Floor
from parity.guests import GuestError, with_guests
from parity.invariants.check import check_run, used
from parity.ladder import Ladder
from parity.replicates import FloorError, floors
from parity.reports.terminal import console, show, show_invariants
from parity.rungs import LADDER
from parity.watch import watch

RUNS = (Path("runs"),)
"""Where to look when nothing is said."""
SHOWN = 10
"""How many of the runs that were left out are named, the newest ones."""


class UsageError(Exception):
    """Nothing sensible can be done with these arguments. str() says what to type instead."""


def main(argv: Sequence[str] | None = None) -> int:
    """Compare pairs, or validate single runs. Returns the exit code."""
    options = parser().parse_args(argv)
    if not options.watch:
        return _once(options)
    options.yes = True
    return watch(lambda: _once(options), options.paths or RUNS, options.seconds)


def _once(options: argparse.Namespace) -> int:
    try:
        if options.validate:
            return _validate(_singles(options))
        ladder = with_guests(LADDER, options.rung)
        return _compare(_pairs(options), ladder, options, floors(_replicates(options), ladder, options.max_bin))
    except (UsageError, TelemetryError, FloorError, GuestError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def parser() -> argparse.ArgumentParser:
    """The arguments of `flame parity`."""
    parser = argparse.ArgumentParser(prog="flame parity", description="Whether real runs and their simulated twins agree.")
    parser.add_argument(
        "paths", nargs="*", type=Path, metavar="PATH", help="runs, or folders of runs (default: runs/), of which the newest pairs are taken"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of the report")
    parser.add_argument("--junit", type=Path, metavar="FILE", help="also write JUnit XML, for continuous integration")
    parser.add_argument("--html", type=Path, metavar="PATH", help="also write one HTML page (a .html file, or a folder) and parity.json")
    parser.add_argument(
        "--floor", nargs="+", type=Path, default=[], metavar="RUN", help="replicates, or folders of them: what real runs differ by"
    )
    parser.add_argument("--rung", action="append", default=[], metavar="MODULE:NAME", help="also this rung of your own (repeatable)")
    parser.add_argument("--max-bin", type=int, metavar="N", help="compare up to and including bin N, counted from 0")
    parser.add_argument("--strict", action="store_true", help="enforce DIAG rungs that have an opinion, too")
    parser.add_argument("--lenient", action="store_true", help="rungs that are judged by a statistic only warn")
    parser.add_argument("--force", action="store_true", help="compare runs whose fingerprints differ, and say so")
    parser.add_argument(
        "--validate", action="store_true", help="check each run by itself, of a folder all that have ended; show what it really used"
    )
    parser.add_argument("--watch", action="store_true", help="check again whenever a run has ended; Ctrl-C ends it (asks nothing)")
    parser.add_argument("--for", type=float, dest="seconds", default=3600.0, metavar="S", help="end a --watch after S seconds (3600)")
    parser.add_argument("--yes", action="store_true", help="don't ask whether the pairs that were found are the right ones")
    return parser


def _replicates(options: argparse.Namespace) -> list[RunDir]:
    """The real runs that were given as replicates. Raises UsageError for a path without any."""
    found: list[RunDir] = []
    for path in options.floor:
        runs = [RunDir(path)] if is_run(path) else [run for run in survey(path)[0] if run.world.kind == "real"]
        if not runs:
            raise UsageError(f"--floor: there is no real run in `{path}`\nhint: `flame replicate RUN -n 3` makes some")
        found += runs
    return found


def _singles(options: argparse.Namespace) -> list[Path]:
    """The runs that were named, and all of the folders that have ended. Raises UsageError when there is nothing to look at."""
    named, runs, left_out = _looked(options.paths)
    for reason in left_out[-SHOWN:]:
        print(f"left out {reason}", file=sys.stderr)
    if not (named or runs):
        raise UsageError(f"no run has ended in {_listed(options.paths)}\nhint: flame run quick")
    return named + [run.path for run in runs]


def _pairs(options: argparse.Namespace) -> list[RunPair]:
    """The two runs that were named, or the newest pairs of all. Raises UsageError when there is nothing to look at."""
    paths, runs, left_out = _looked(options.paths)
    named = [RunDir(path) for path in paths]
    if len(named) == 2 and len(options.paths) == 2:
        return [pair_of(*named)]
    pairs = pair_up(named + runs)
    if not pairs:
        raise UsageError(_nothing(options.paths, left_out))
    if len(named) < len(options.paths) or not options.paths:
        _confirm(pairs, left_out, options)
    return pairs


def _looked(given: Sequence[Path]) -> tuple[list[Path], list[RunDir], list[str]]:
    """The runs that were named, those of the folders, and which of these were left out. Raises UsageError for a path that is neither."""
    named, runs, left_out = list[Path](), list[RunDir](), list[str]()
    for path in given or RUNS:
        if not path.is_dir():
            raise UsageError(
                f"there is no folder `{path}`\nhint: give a run, or a folder of runs; `flame run quick --mode both` makes a pair"
            )
        if is_run(path):
            named.append(path)
        else:
            surveyed, reasons = survey(path)
            runs += surveyed
            left_out += reasons
    return named, runs, left_out


def _listed(given: Sequence[Path]) -> str:
    return ", ".join(f"`{path}`" for path in given or RUNS)


def _nothing(given: Sequence[Path], left_out: Sequence[str]) -> str:
    reasons = "".join(f"\n  left out: {reason}" for reason in left_out[-SHOWN:])
    where = _listed(given)
    return f"no complete pair in {where}: a real and a sim run of one condition, both ended{reasons}\nhint: flame run quick --mode both"


def _confirm(pairs: Sequence[RunPair], left_out: Sequence[str], options: argparse.Namespace) -> None:
    """Show what was taken, and ask. Raises UsageError for a no, or where nobody can be asked."""
    for reason in left_out[-SHOWN:]:
        print(f"left out {reason}", file=sys.stderr)
    for pair in pairs:
        print(f"took {pair.real.label}\n and {pair.sim.label}", file=sys.stderr)
    if options.yes:
        return
    if not sys.stdin.isatty():
        raise UsageError("nobody can be asked whether these are the right pairs\nhint: --yes takes them")
    print("compare these? [Y/n] ", end="", file=sys.stderr, flush=True)
    if not yes(sys.stdin):
        raise UsageError("not compared\nhint: name the two runs")


def _compare(pairs: Sequence[RunPair], ladder: Ladder, options: argparse.Namespace, known: Mapping[str, Floor]) -> int:
    chosen = Options(options.max_bin, options.strict, options.lenient, options.force)
    reports, refused = list[Report](), list[str]()
    for pair in pairs:
        try:
            reports.append(check(pair, ladder, chosen, known.get(pair.real.run_fp, NONE)))
        except (RefusedError, TelemetryError) as error:
            refused.append(str(error))
    if options.json:
        from parity.reports import document

        sys.stdout.write(document.text(reports).decode())
    else:
        show(console(), reports)
    _write(reports, refused, options)
    for reason in refused:
        print(f"error: {reason}", file=sys.stderr)
    return 2 if refused else max(report.exit_code for report in reports)


def _write(reports: Sequence[Report], refused: Sequence[str], options: argparse.Namespace) -> None:
    """The reports that are files. Raises UsageError for a place that can't be written."""
    try:
        if options.junit:
            from parity.reports import junit

            junit.write(options.junit, reports, refused)
        if options.html:
            from parity.reports import page  # templates, which no other form of a report needs

            print(f"wrote {page.write(options.html, reports, refused)}", file=sys.stderr)
    except OSError as error:
        raise UsageError(f"`{error.filename}` can't be written: {error.strerror}") from None


def _validate(paths: Sequence[Path]) -> int:
    code = 0
    for path in paths:
        try:
            run = RunDir(path)
            rulings = check_run(run)
        except TelemetryError as error:
            print(f"error: {error}", file=sys.stderr)
            code = 2
            continue
        code = max(code, *(2 if ruling.broke else ruling.holds is False for ruling in rulings))
        show_invariants(console(), run, rulings, used(run))
    return code
