"""`flame export trace`: runs in a form that other programs read, to a file or to stdout."""

import sys
from pathlib import Path

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
