"""`flame export`: runs in a form that other programs read, to a file, to stdout, or into a folder."""

import sys
from pathlib import Path
from typing import Literal

from flame.analysis.learned import Learned
from flame.config.errors import ConfigError
from flame.telemetry.chrome import trace
from flame.telemetry.reader import TelemetryError
from flame.telemetry.rundir import RunDir


def export_trace(paths: list[Path], out: Path | None) -> int:
    """Write the trace of these runs, real before sim. Returns the exit code."""
    try:
        runs = sorted((RunDir(path) for path in paths), key=lambda run: run.world.kind)
        for run in runs:
            _need_full(run)
        told = trace(runs)
    except TelemetryError as error:
        raise ConfigError(str(error), "give one or two of `flame runs`") from None
    if out is None:
        sys.stdout.write(told)
        return 0
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(told, encoding="utf-8")
    print(f"wrote {out}: open it at ui.perfetto.dev or chrome://tracing", file=sys.stderr)
    return 0


def _need_full(run: RunDir) -> None:
    if run.world.level != "full":
        raise ConfigError(
            f"`{run.label}` has telemetry level `{run.world.level}`, a trace needs every dispatch", "run it with --level full"
        )


def export_tables(path: Path, out: Path, form: Literal["parquet", "csv"]) -> int:
    """Write a file for each kind of record that the run has, and one of its curve. Returns the exit code."""
    from flame.telemetry.tables import write_tables

    learned = _learned(path)
    files = write_tables(learned.run, {"curve": learned.curve}, out, form)
    print(f"wrote {len(files)} files to {out}", file=sys.stderr)
    return 0


def export_tensorboard(path: Path, out: Path) -> int:
    """Write the run's scalars as TensorBoard events. Returns the exit code."""
    from flame.launch.results.scalars import write_scalars

    learned = _learned(path)
    count = write_scalars(learned, out / learned.run.label)
    print(f"wrote {count} scalars to {out / learned.run.label}: tensorboard --logdir {out}", file=sys.stderr)
    return 0


def _learned(path: Path) -> Learned:
    try:
        return Learned(RunDir(path))
    except TelemetryError as error:
        raise ConfigError(str(error), "give one of `flame runs`") from None
