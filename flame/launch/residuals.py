"""What a calibration is worth: each statistical rung of a real run against its simulation, without the law and with it."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson
from rich.console import Console
from rich.table import Table

from flame.config.world import World
from flame.launch.replicate import opened
from flame.launch.results.calibrate import calibrated
from flame.launch.run import run
from flame.telemetry.rundir import RunDir, RunPair
from parity.engine import Report, Result, check, statistical
from parity.floor import NONE
from parity.replicates import floors
from parity.rungs import LADDER

NAME = "calibrated.json"


def calibrate(paths: Sequence[Path], out: Path | None, console: Console) -> int:
    """Write the registry, simulate without it and with it, print the residuals. 1 when more rungs fail with it than without."""
    runs = [opened(path) for path in paths]
    registry, file = calibrated(runs), out or runs[0].path / NAME
    file.write_bytes(orjson.dumps(registry, option=orjson.OPT_INDENT_2))
    told = registry["measured"]
    means = ", ".join(f"{name.removesuffix('_s')} {1e3 * value:.1f} ms" for name, value in told["mean_s"].items())
    console.print(
        f"{file}: {told['updates']} updates, {told['evaluations']} evaluations of {len(runs)} runs; in the mean {means}", soft_wrap=True
    )
    before, after = checked(runs, file)
    console.print(table(before, after))
    console.print(f"hint: flame run ... --latency {file}, or --set delays.registry={file} for another condition", soft_wrap=True)
    return int(after.count("FAIL") > before.count("FAIL"))


def checked(runs: Sequence[RunDir], file: Path) -> tuple[Report, Report]:
    """The first run against its simulation without latencies, and with those of `file`; beside it the floor of all runs."""
    first = runs[0]
    floor = floors(runs, LADDER)[first.run_fp] if len(runs) > 1 else NONE
    with TemporaryDirectory() as folder:
        worlds = [World(kind="sim", latency=latency, journal=False, blobs="none") for latency in (None, str(file))]
        sims = [RunDir(run(first.condition, world, runs=folder).path) for world in worlds]
        before, after = (check(RunPair(first, sim), LADDER, floor=floor) for sim in sims)
    return before, after


def table(before: Report, after: Report) -> Table:
    """Rungs down: tolerance, floor, and both residuals with their verdicts."""
    found = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for title in ("rung", "tol", "floor", "before", "after", "verdict"):
        found.add_column(title, justify="left" if title in ("rung", "verdict") else "right")
    for row in residuals(before, after):
        numbers = (_number(row[name]) for name in ("tol", "floor", "before", "after"))
        found.add_row(f"{row['id']} {row['name']}", *numbers, " -> ".join(dict.fromkeys(row["verdicts"])))
    return found


def residuals(before: Report, after: Report) -> Iterator[dict[str, Any]]:
    """One row for each statistical rung that has a number in both reports."""
    for one, other in zip(before.results, after.results, strict=True):
        if statistical(one.rung, before.pair) and _has_number(one) and _has_number(other):
            yield {
                "id": one.rung.id, "name": one.rung.name, "tol": other.finding.tol, "floor": other.floor,
                "before": one.finding.effect, "after": other.finding.effect, "verdicts": (one.verdict, other.verdict),
            }  # fmt: skip


def _has_number(result: Result) -> bool:
    return result.finding.effect is not None


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
