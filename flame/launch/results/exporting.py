"""`flame export`: runs in a form that other programs read, to a file, to stdout, or into a folder of their own.

Every run has its folder in `--out`, named like it, so that exports of several runs lie side by side and never in one another.
An export is there whole or not at all: it is made aside, and renamed when it is done.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree
from typing import Literal

from flame.analysis.learned import Learned
from flame.config.errors import ConfigError
from flame.telemetry.chrome import trace
from flame.telemetry.reader import TelemetryError
from flame.telemetry.rundir import RunDir


def export_trace(paths: list[Path], out: Path | None) -> int:
    """Write the trace of these runs, real before sim. Returns the exit code."""
    with _readable("give one or two of `flame runs`"):
        runs = sorted((RunDir(path) for path in paths), key=lambda run: run.world.kind)
        for run in runs:
            _need_full(run)
        told = trace(runs)
    if out is None:
        sys.stdout.write(told)
        return 0
    with _writable(out, "give the name of a file, such as `--out trace.json`"):
        _write(out, told)
    print(f"wrote {out}: open it at ui.perfetto.dev or chrome://tracing", file=sys.stderr)
    return 0


def _write(out: Path, told: str) -> None:
    """The file, whole or not at all; what is there and no file (a pipe) is written as it is."""
    if out.exists() and not out.is_file():
        out.write_text(told, encoding="utf-8")
        return
    out.parent.mkdir(parents=True, exist_ok=True)
    aside = out.with_name(f"{out.name}.part")
    try:
        aside.write_text(told, encoding="utf-8")
        aside.replace(out)
    finally:
        aside.unlink(missing_ok=True)


def _need_full(run: RunDir) -> None:
    if run.world.level != "full":
        raise ConfigError(
            f"`{run.label}` has telemetry level `{run.world.level}`, a trace needs every dispatch", "run it with --level full"
        )


def export_tables(path: Path, out: Path, form: Literal["parquet", "csv"]) -> int:
    """Write a file for each kind of record that the run has, and one of its curve. Returns the exit code."""
    from flame.telemetry.tables import write_tables

    with _readable():
        learned = Learned(RunDir(path))
        with _made(out / learned.run.label) as folder:
            files = write_tables(learned.run, {"curve": learned.curve}, folder, form)
    print(f"wrote {len(files)} files to {out / learned.run.label}", file=sys.stderr)
    return 0


def export_tensorboard(path: Path, out: Path) -> int:
    """Write the run's scalars as TensorBoard events. Returns the exit code."""
    from flame.launch.results.scalars import write_scalars

    with _readable():
        learned = Learned(RunDir(path))
        with _made(out / learned.run.label) as folder:
            count = write_scalars(learned, folder)
    print(f"wrote {count} scalars to {out / learned.run.label}: tensorboard --logdir {out}", file=sys.stderr)
    return 0


@contextmanager
def _made(folder: Path) -> Iterator[Path]:
    """A folder to write into, which is `folder` once everything is written. Raises ConfigError where one is there, or can't be made."""
    aside = folder.with_name(f"{folder.name}.part")
    with _writable(folder, "give a folder that can be made: `--out DIR`"):
        if folder.exists():
            raise ConfigError(f"`{folder}` is there already", "remove it, or give another `--out`")
        rmtree(aside, ignore_errors=True)
        aside.mkdir(parents=True)
        try:
            yield aside
            aside.rename(folder)
        finally:
            rmtree(aside, ignore_errors=True)


@contextmanager
def _readable(remedy: str = "give one of `flame runs`") -> Iterator[None]:
    try:
        yield
    except TelemetryError as error:
        raise ConfigError(str(error), remedy) from None


@contextmanager
def _writable(out: Path, remedy: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ConfigError(f"`{out}` can't be written: {error.strerror or error}", remedy) from None
