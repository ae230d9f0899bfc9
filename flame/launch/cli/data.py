"""`flame data`: prepare data sets, and deal their rows to clients."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from flame.launch.cli.numbers import over_zero
from flame.launch.screen.consoles import refusals

data_app = typer.Typer(no_args_is_help=True, help="Prepare data sets and their partitions.")


def _origin(*names: str, **rest: Any) -> Any:
    return typer.Option(*names, rich_help_panel="Rows of your own", **rest)


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
    from flame.launch.cli import origins
    from flame.launch.preflight import flags
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
    alpha: Annotated[float, typer.Option(metavar="A", help="Dirichlet concentration of niid_label.", callback=over_zero)] = 1.0,
    into: Annotated[Path | None, typer.Option(metavar="DIR", help="Instead of $FLAME_DATA or ./data.")] = None,
) -> None:
    """Add a partition to a prepared data set."""
    from flame.learn.data import partition

    with refusals():
        typer.echo(partition(name, type, clients, alpha, into))
