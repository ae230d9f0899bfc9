"""The commands that look after runs: `flame runs`, `flame runs prune`, `flame status`, `flame stop`."""

from pathlib import Path
from typing import Annotated

import typer

from flame.launch.screen import consoles
from flame.launch.screen.consoles import refusals

runs_app = typer.Typer()
listing_app = typer.Typer(help="List the runs, with verdict and fingerprint; or remove some.")
runs_app.add_typer(listing_app, name="runs")

RunsFolder = Annotated[Path, typer.Option("--runs", metavar="DIR", help="Where run directories are.")]
Verdicts = Annotated[list[str] | None, typer.Option("--verdict", metavar="V", help="Only runs that ended so: CRASH, ... Repeatable.")]


def complete_runs(incomplete: str) -> list[str]:
    """Names of the runs in ./runs, for the shell."""
    from flame.telemetry.rundir import RunName

    folder = Path("runs")
    return [path.name for path in sorted(folder.glob(f"{incomplete}*")) if RunName.parse(path.name)] if folder.is_dir() else []


def complete_run_sets(incomplete: str) -> list[str]:
    """Names of the run-sets of experiments.yaml, for the shell."""
    from flame.config.errors import ConfigError
    from flame.config.experiments import load

    try:
        return [name for name in load().run_sets if name.startswith(incomplete)]
    except ConfigError:
        return []


@listing_app.callback(invoke_without_command=True)
def list_runs(
    context: typer.Context,
    only: Annotated[list[str] | None, typer.Option("--only", metavar="TEXT", help="Only runs with this in their name. Repeatable.")] = None,
    verdict: Verdicts = None,
    size: Annotated[bool, typer.Option("--size", help="Also what they take of the disk.")] = False,
    runs: RunsFolder = Path("runs"),
) -> None:
    """List the runs, with verdict and fingerprint; `flame runs prune` removes some."""
    if context.invoked_subcommand is not None:
        return
    from flame.launch.folder.listing import show_runs
    from flame.launch.folder.prune import known_verdict

    with refusals():
        show_runs(runs, consoles.out(), only or (), [known_verdict(each) for each in verdict or ()], sizes=size)


@listing_app.command("prune")
def prune_runs(
    keep: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="The N newest of each run-set, run_fp, world and verdict stay.")
    ] = None,
    older_than: Annotated[str | None, typer.Option(metavar="AGE", help="Only runs begun longer ago: 30m, 12h, 7d, 2w.")] = None,
    verdict: Verdicts = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would go.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing.")] = False,
    runs: RunsFolder = Path("runs"),
) -> None:
    """Remove runs, after a question; never one that goes on. Several conditions narrow the choice."""
    from flame.launch.folder.prune import prune, wanted

    with refusals():
        raise typer.Exit(prune(runs, wanted(keep, older_than, verdict or ()), consoles.out(), yes=yes, dry_run=dry_run))


@runs_app.command()
def status(runs: RunsFolder = Path("runs")) -> None:
    """What is going on: runs without a verdict, what can't be read, and processes that were left behind."""
    from flame.launch.folder.listing import show_status

    with refusals():
        raise typer.Exit(show_status(runs, consoles.out()))


@runs_app.command()
def stop(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run directory, or how its name begins.", autocompletion=complete_runs)],
    runs: RunsFolder = Path("runs"),
) -> None:
    """Ask a run that goes on to end: as INTERRUPTED, with telemetry that can be read."""
    from flame.launch.folder.stop import stop_run

    with refusals():
        raise typer.Exit(stop_run(run, runs, consoles.out()))
