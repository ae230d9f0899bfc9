"""The command line: `flame run`, `flame parity`, `flame replay`, `flame data`, `flame export`, `flame runs`,
`flame status`.

Exit codes: 0 all ended well, 1 a run ended badly or parity failed, 2 refused (nothing was started).
Whatever is heavy is imported by the command that needs it, so that `flame --help` answers at once.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from flame.launch import screen

ABOUT = "One federated-learning code, run for real and simulated, and proof that the two agree."

app = typer.Typer(add_completion=True, no_args_is_help=True, pretty_exceptions_enable=False, help=ABOUT)
data_app = typer.Typer(no_args_is_help=True, help="Prepare data sets and their partitions.")
app.add_typer(data_app, name="data")
export_app = typer.Typer(no_args_is_help=True, help="Write runs in a form that other programs read.")
app.add_typer(export_app, name="export")

BAD, REFUSED = 1, 2
DELEGATE = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}


def main() -> None:
    """The entry point."""
    app()


@contextmanager
def refusals() -> Iterator[None]:
    """A configuration that can't be run is one message and exit code 2."""
    from flame.config.errors import ConfigError

    try:
        yield
    except ConfigError as error:
        screen.err().print(str(error), markup=False, soft_wrap=True)
        raise typer.Exit(REFUSED) from None


def _what(*names: str, **rest: Any) -> Any:
    return typer.Option(*names, rich_help_panel="What is run", **rest)


def _field(*names: str, **rest: Any) -> Any:
    return typer.Option(*names, rich_help_panel="Fields of the condition", **rest)


def _how(*names: str, **rest: Any) -> Any:
    return typer.Option(*names, rich_help_panel="How it is carried out (changes no result)", **rest)


def _origin(*names: str, **rest: Any) -> Any:
    return typer.Option(*names, rich_help_panel="Rows of your own", **rest)


def _control(*names: str, **rest: Any) -> Any:
    return typer.Option(*names, rich_help_panel="Control", show_default=False, **rest)


RunSet = Annotated[str | None, typer.Argument(metavar="RUN_SET", help="Without one, the run-sets are listed.")]
RunsFolder = Annotated[Path, typer.Option("--runs", metavar="DIR", help="Where run directories are.")]


@app.command()
def run(
    run_set: RunSet = None,
    mode: Annotated[Literal["sim", "real", "both"], _what(help="Simulated, for real over MQTT, or both and compared.")] = "sim",
    named: Annotated[str | None, _what("--run-set", metavar="NAME", help="The same as RUN_SET.")] = None,
    only: Annotated[str | None, _what(metavar="A,B", help="These baselines of the run-set.")] = None,
    seeds: Annotated[str | None, _what(metavar="1,2,3", help="Instead of the run-set's seeds.")] = None,
    experiments: Annotated[Path | None, _what(metavar="FILE", help="Instead of ./experiments.yaml.")] = None,
    sets: Annotated[list[str] | None, _field("--set", metavar="A.B=VALUE", help="Any field, such as stop.cycles=4. Repeatable.")] = None,
    trainers: Annotated[int | None, _field(metavar="N", help="trainers")] = None,
    agg_goal: Annotated[int | None, _field(metavar="K", help="goal: accepts that close a cycle")] = None,
    concurrency: Annotated[int | None, _field(metavar="C", help="concurrency: assignments in flight")] = None,
    delay_factor: Annotated[float | None, _field(metavar="F", help="delays.factor: divides the modelled delays")] = None,
    max_runtime: Annotated[float | None, _field(metavar="S", help="stop.runtime_s: budget of stamp time in seconds")] = None,
    var_threshold: Annotated[float | None, _field(metavar="V", help="commit.variance.threshold")] = None,
    max_iter_per_data_id: Annotated[int | None, _field(metavar="M", help="commit.cap.max: cycles of one bin")] = None,
    broker: Annotated[str, _how(metavar="NAME", help="Real: embedded, mosquitto, or HOST:PORT of a running one.")] = "embedded",
    workers: Annotated[int, _how(metavar="W", help="Real: processes that host the trainers.")] = 2,
    pool: Annotated[int, _how(metavar="P", help="Sim: compute processes, 0 for inline.")] = 0,
    wire: Annotated[Literal["reference", "roundtrip"], _how(help="Sim: whether messages are encoded and decoded.")] = "reference",
    device: Annotated[str, _how(metavar="NAME", help="Where torch computes: cpu, cuda:N (fidelity tier), auto.")] = "cpu",
    prefix_cache: Annotated[bool, _how(help="Keep activations below the first trainable parameter.", show_default=False)] = True,
    level: Annotated[Literal["full", "commits", "summary"], _how(help="How much telemetry.")] = "full",
    blobs: Annotated[Literal["all", "none"], _how(help="Whether journals keep tensors, which replay needs.")] = "all",
    parity: Annotated[bool, _control(help="Compare the pairs of --mode both (on).")] = True,
    runs: Annotated[Path, _control(metavar="DIR", help="Where run directories are made (runs).")] = Path("runs"),
    dry_run: Annotated[bool, _control("--dry-run", help="Stop after the pre-flight.")] = False,
    yes: Annotated[bool, _control("--yes", "-y", help="Ask nothing.")] = False,
    force: Annotated[bool, _control("--force", help="Run what is only unwise; never what can't work.")] = False,
    clean: Annotated[bool, _control("--clean", help="End strays of earlier runs first.")] = False,
) -> None:
    """Run a run-set: every baseline with every seed, in one world or both."""
    from flame.launch import command, flags

    fields = {
        "trainers": trainers, "agg_goal": agg_goal, "concurrency": concurrency, "delay_factor": delay_factor,
        "max_runtime": max_runtime, "var_threshold": var_threshold, "max_iter_per_data_id": max_iter_per_data_id,
    }  # fmt: skip
    carrying = {
        "broker": broker, "workers": workers, "pool": pool, "wire": wire, "device": device,
        "prefix_cache": prefix_cache, "level": level, "blobs": blobs,
    }  # fmt: skip
    with refusals():
        if not (run_set or named):
            raise typer.Exit(command.list_run_sets(experiments))
        plan = command.plan(
            flags.one_name(run_set, named), experiments, flags.names(only), seeds,
            flags.patches(fields, sets or []), flags.worlds(mode, carrying), runs,
        )  # fmt: skip
        raise typer.Exit(command.run(plan, dry_run=dry_run, yes=yes, force=force, sweep=clean, compare=parity))


@app.command(context_settings=DELEGATE, add_help_option=False)
def parity(context: typer.Context) -> None:
    """Compare real runs with their simulated twins (`flame parity --help`)."""
    from parity.cli import main as compare

    raise typer.Exit(compare(context.args))


@app.command()
def replay(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run directory.")],
    node: Annotated[str | None, typer.Option(metavar="NODE", help="Only this node: aggregator, t0, ...")] = None,
    until: Annotated[int | None, typer.Option(metavar="STEP", help="Up to and including this step.")] = None,
    show: Annotated[bool, typer.Option("--print", help="Print the steps: event, released rows, state.")] = False,
) -> None:
    """Feed a run's journals to fresh machines; every effect must come out again, byte for byte."""
    from flame.launch.replaying import replay_run

    with refusals():
        raise typer.Exit(replay_run(run, node, until, show))


@data_app.command("prepare")
def data_prepare(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="r8, 20news, agnews, or a name for rows of your own.")] = None,
    named: Annotated[str | None, typer.Option("--name", metavar="NAME", help="The same as NAME.")] = None,
    origin: Annotated[Path | None, typer.Option("--from", metavar="DIR", help="agnews: where its train.csv and test.csv are.")] = None,
    csv: Annotated[Path | None, _origin(metavar="FILE", help="A CSV file with a header.")] = None,
    text_col: Annotated[str | None, _origin(metavar="COLUMN", help="Its texts (also with --from-hub).")] = None,
    label_col: Annotated[str | None, _origin(metavar="COLUMN", help="Its labels (also with --from-hub).")] = None,
    test_csv: Annotated[Path | None, _origin(metavar="FILE", help="Its test rows; without, a tenth is set apart.")] = None,
    from_hub: Annotated[str | None, _origin(metavar="NAME", help="A data set of the hub, or a folder (extra `hub`).")] = None,
    h5: Annotated[Path | None, _origin(metavar="FILE", help="A FedNLP data file; its partitions come along.")] = None,
    partition_h5: Annotated[Path | None, _origin(metavar="FILE", help="Its partitions, if they aren't beside it.")] = None,
    shards: Annotated[Path | None, _origin(metavar="DIR", help="Token ids: train-*.npz, test-*.npz, meta.json.")] = None,
    into: Annotated[Path | None, typer.Option(metavar="DIR", help="Instead of $FLAME_DATA or ./data.")] = None,
) -> None:
    """Prepare a data set, known by name or of your own, and the partitions of the shipped run-sets."""
    from flame.launch import flags, origins
    from flame.learn.data import prepare

    with refusals():
        given = {
            "csv": csv, "text_col": text_col, "label_col": label_col, "test_csv": test_csv,
            "from_hub": from_hub, "h5": h5, "partition_h5": partition_h5, "shards": shards,
        }  # fmt: skip
        chosen, source = origins.wanted(flags.one_name(name, named, "data set"), given)
        typer.echo(prepare(chosen, into, lambda line: typer.echo(line, err=True), source, origin, origins.partitions(given)))


@data_app.command("partition")
def data_partition(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A prepared data set.")],
    type: Annotated[Literal["uniform", "niid_label"], typer.Option(help="How samples are dealt.")],
    clients: Annotated[int, typer.Option(metavar="N", min=1, help="To how many.")],
    alpha: Annotated[float, typer.Option(metavar="A", help="Dirichlet concentration of niid_label.")] = 1.0,
    into: Annotated[Path | None, typer.Option(metavar="DIR", help="Instead of $FLAME_DATA or ./data.")] = None,
) -> None:
    """Add a partition to a prepared data set."""
    from flame.learn.data import partition

    with refusals():
        typer.echo(partition(name, type, clients, alpha, into))


@export_app.command("trace")
def export_trace(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run directory.")],
    twin: Annotated[Path | None, typer.Argument(metavar="RUN2", help="Another one, on the same axis.")] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="FILE", help="Instead of stdout.")] = None,
) -> None:
    """A timeline for Perfetto or chrome://tracing: a lane per trainer, on the axis of stamps."""
    from flame.launch.exporting import export_trace

    with refusals():
        raise typer.Exit(export_trace([run] if twin is None else [run, twin], out))


@app.command("runs")
def list_runs(runs: RunsFolder = Path("runs")) -> None:
    """List the runs, with verdict and fingerprint."""
    from flame.launch.listing import show_runs

    show_runs(runs, screen.out())


@app.command()
def status(runs: RunsFolder = Path("runs")) -> None:
    """What is going on: runs without a verdict, and processes that were left behind."""
    from flame.launch.listing import show_status

    raise typer.Exit(show_status(runs, screen.out()))


if __name__ == "__main__":
    main()
