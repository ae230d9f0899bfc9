"""The command line, second part: what is made of finished runs. `flame figs` and `flame export`."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from flame.launch.screen import consoles
from flame.launch.screen.consoles import refusals

export_app = typer.Typer(no_args_is_help=True, help="Write runs in a form that other programs read.")

RunPath = Annotated[Path, typer.Argument(metavar="RUN", help="A run directory.")]
Into = Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="The run gets a folder in it, named like the run.")]


def _shown(*names: str, **rest: Any) -> Any:
    return typer.Option(*names, rich_help_panel="How it is shown", **rest)


def figs(
    file: Annotated[Path, typer.Argument(metavar="FIGS", help="A figs.yaml.")] = Path("figs.yaml"),
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where a folder of this time is made, and `latest`.")] = Path("figures"),
    runs: Annotated[Path | None, typer.Option(metavar="DIR", help="Instead of the file's folder of runs.")] = None,
    run: Annotated[list[str] | None, typer.Option("--run", metavar="ARM=DIR", help="Instead of an arm's runs. Repeatable.")] = None,
    only: Annotated[str | None, typer.Option(metavar="A,B", help="These figures.")] = None,
    smooth: Annotated[int, _shown(metavar="N", min=0, help="A running mean of N evaluations, for the eye; raw values stay.")] = 0,
    cutoff_mode: Annotated[Literal["none", "peak_acc", "last_improvement"], _shown(help="Where curves end.")] = "none",
    blind: Annotated[bool, _shown("--blind", help="Don't tell the own system's name.")] = False,
) -> None:
    """Draw the figures of a figs.yaml from finished runs: PDF, PNG and captions."""
    from flame.figures.arms import given
    from flame.figures.book import Wanted, make
    from flame.figures.scene import Style
    from flame.launch.preflight import flags

    with refusals():
        style = Style(smooth, cutoff_mode, blind)
        folder = make(file, out, Wanted(runs, given(run or []), flags.names(only) or (), style), typer.echo)
        consoles.err().print(f"figures: {folder} (and {out / 'latest'})", markup=False, soft_wrap=True)


@export_app.command("trace")
def export_trace(
    run: RunPath,
    twin: Annotated[Path | None, typer.Argument(metavar="RUN2", help="Another one, on the same axis.")] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="FILE", help="Instead of stdout.")] = None,
) -> None:
    """A timeline for Perfetto or chrome://tracing: a lane per trainer, on the axis of stamps."""
    from flame.launch.results.exporting import export_trace

    with refusals():
        raise typer.Exit(export_trace([run] if twin is None else [run, twin], out))


@export_app.command("parquet")
def export_parquet(run: RunPath, out: Into) -> None:
    """The records as Parquet, a file a kind, and the learning curve."""
    from flame.launch.results.exporting import export_tables

    with refusals():
        raise typer.Exit(export_tables(run, out, "parquet"))


@export_app.command("csv")
def export_csv(run: RunPath, out: Into) -> None:
    """The records as CSV, a file a kind, and the learning curve; lists and structures as JSON."""
    from flame.launch.results.exporting import export_tables

    with refusals():
        raise typer.Exit(export_tables(run, out, "csv"))


@export_app.command("tensorboard")
def export_tensorboard(run: RunPath, out: Into) -> None:
    """The learning curve and the closes as scalars for TensorBoard (extra `tensorboard`)."""
    from flame.launch.results.exporting import export_tensorboard

    with refusals():
        raise typer.Exit(export_tensorboard(run, out))
