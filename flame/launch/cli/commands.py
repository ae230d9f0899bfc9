"""The command line: `flame run`, `flame parity` and the rest; `flame --help` lists them.

Exit codes: 0 all ended well, 1 a run ended badly or parity failed, 2 refused (nothing was started).
Whatever is heavy is imported by the command that needs it, so that `flame --help` answers at once.
"""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from flame.launch.cli.data import data_app
from flame.launch.cli.numbers import over_zero
from flame.launch.cli.results import export_app, figs
from flame.launch.cli.runs import RunsFolder, complete_run_sets, runs_app
from flame.launch.screen import consoles
from flame.launch.screen.consoles import refusals

ABOUT = "One federated-learning code, run for real and simulated, and proof that the two agree."

app = typer.Typer(add_completion=True, no_args_is_help=True, pretty_exceptions_enable=False, help=ABOUT)
app.add_typer(data_app, name="data")
app.add_typer(export_app, name="export")
app.command("figs")(figs)
app.add_typer(runs_app)

DELEGATE = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}


def main() -> None:
    """The entry point."""
    app()


def _what(*names: str, **rest: Any) -> Any:
    return typer.Option(*names, rich_help_panel="What is run", **rest)


def _field(*names: str, **rest: Any) -> Any:
    return typer.Option(*names, rich_help_panel="Fields of the condition", **rest)


def _how(*names: str, **rest: Any) -> Any:
    return typer.Option(*names, rich_help_panel="How it is carried out (changes no result)", **rest)


def _control(*names: str, **rest: Any) -> Any:
    return typer.Option(*names, rich_help_panel="Control", show_default=False, **rest)


RunSet = Annotated[str | None, typer.Argument(metavar="RUN_SET", help="Without one, they are listed.", autocompletion=complete_run_sets)]


@app.command()
def run(
    context: typer.Context,
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
    delays: Annotated[Literal["on", "off"] | None, _field(help="off: no trainer is slower than another")] = None,
    delay_factor: Annotated[float | None, _field(metavar="F", help="delays.factor: divides the modelled delays")] = None,
    max_runtime: Annotated[float | None, _field(metavar="S", help="stop.runtime_s: budget of stamp time in seconds")] = None,
    max_data_id: Annotated[int | None, _field(metavar="B", help="stop.commits: each commit ends a bin of data")] = None,
    var_threshold: Annotated[float | None, _field(metavar="V", help="commit.variance.threshold")] = None,
    max_iter_per_data_id: Annotated[int | None, _field(metavar="M", help="commit.cap.max: cycles of one bin")] = None,
    var_stopping_policy: Annotated[str | None, _field(metavar="P", help="commit: off, fixed_cap, plateau, beside the variances")] = None,
    partition: Annotated[str | None, _field(metavar="P", help="partition.type")] = None,
    avail_trace: Annotated[str | None, _field(metavar="T", help="availability.trace: syn_20, phone_2st, ...")] = None,
    trace_time_scale: Annotated[float | None, _field(metavar="X", help="availability.time_scale: how much faster than it is")] = None,
    agg_rate_type: Annotated[str | None, _field(metavar="T", help="rate.type")] = None,
    target_acc: Annotated[float | None, _field(metavar="A", help="stop.target.accuracy: converged at it")] = None,
    converge_window: Annotated[int | None, _field(metavar="W", help="stop.target.window: evaluations in a row")] = None,
    stall_window_s: Annotated[float | None, _field(metavar="S", help="stop.stall.window_s: stamp time without progress")] = None,
    stall_window_h: Annotated[float | None, _field(metavar="H", help="the same in hours")] = None,
    stall_on: Annotated[str | None, _field(metavar="WHAT", help="stop.stall.on: acc, loss, either")] = None,
    stall_min_delta: Annotated[float | None, _field(metavar="D", help="stop.stall.min_delta: progress of accuracy, absolute")] = None,
    loss_min_rel_delta: Annotated[float | None, _field(metavar="D", help="stop.stall.loss_min_rel_delta: of loss, relative")] = None,
    broker: Annotated[str, _how(metavar="NAME", help="Real: embedded, mosquitto, or HOST:PORT of a running one.")] = "embedded",
    workers: Annotated[int, _how(metavar="W", help="Real: processes that host the trainers.")] = 2,
    remote: Annotated[int, _how(metavar="W", help="Real: how many more join from elsewhere (`flame worker`).")] = 0,
    broker_user: Annotated[str | None, _how(metavar="NAME", help="Real: at the broker; its password: $FLAME_BROKER_PASSWORD.")] = None,
    broker_ca: Annotated[str | None, _how(metavar="FILE", help="Real: the broker's authority, for TLS.")] = None,
    pin: Annotated[bool, _how("--pin", help="Real: a core for each process.", show_default=False)] = False,
    pool: Annotated[int, _how(metavar="P", help="Sim: compute processes, 0 for inline.")] = 0,
    wire: Annotated[Literal["reference", "roundtrip"], _how(help="Sim: whether messages are encoded and decoded.")] = "reference",
    latency: Annotated[str | None, _how(metavar="FILE", help="Sim: latencies that `flame calibrate` measured, drawn.")] = None,
    draw: Annotated[int, _how(metavar="D", help="Sim: which draws of them.")] = 0,
    device: Annotated[str, _how(metavar="NAME", help="Where torch computes: cpu, cuda:0,1 or cuda:all (fidelity tier), auto.")] = "cpu",
    prefix_cache: Annotated[bool, _how(help="Keep activations below the first trainable parameter.", show_default=False)] = True,
    level: Annotated[Literal["full", "commits", "summary"], _how(help="How much telemetry.")] = "full",
    blobs: Annotated[Literal["all", "none"], _how(help="Whether journals keep tensors, which replay needs.")] = "all",
    checkpoint: Annotated[int | None, _how(metavar="M", help="Commits between two checkpoints, 0 for none (sim 25, real 1).")] = None,
    after: Annotated[str | None, _control(metavar="A,B", help="What follows: parity (where there are pairs), sanity, plot.")] = None,
    parity: Annotated[bool, _control(help="Compare the pairs of --mode both (on).")] = True,
    runs: Annotated[Path, _control(metavar="DIR", help="Where run directories are made (runs).")] = Path("runs"),
    dry_run: Annotated[bool, _control("--dry-run", help="Stop after the pre-flight.")] = False,
    yes: Annotated[bool, _control("--yes", "-y", help="Ask nothing.")] = False,
    force: Annotated[bool, _control("--force", help="Run what is only unwise; never what can't work.")] = False,
    clean: Annotated[bool, _control("--clean", help="End strays of earlier runs first.")] = False,
) -> None:
    """Run a run-set: every baseline with every seed, in one world or both."""
    given = dict(locals())
    from flame.launch import command

    with refusals():
        raise typer.Exit(command.from_flags(given, _typed(context)))


def _typed(context: typer.Context) -> set[str]:
    """The parameters that somebody gave, rather than their defaults."""
    return {name for name in context.params if getattr(context.get_parameter_source(name), "name", "") == "COMMANDLINE"}


@app.command(context_settings=DELEGATE, add_help_option=False)
def parity(context: typer.Context) -> None:
    """Compare real runs with their simulated twins (`flame parity --help`)."""
    from parity.cli import main as compare

    raise typer.Exit(compare(context.args))


@app.command(context_settings=DELEGATE, add_help_option=False)
def check(context: typer.Context) -> None:
    """Check what single runs must satisfy by themselves: `flame check RUN...`, or all of a folder (as `flame parity --validate`)."""
    from parity.cli import main as compare

    raise typer.Exit(compare(["--validate", "--yes", *context.args]))


@app.command(context_settings=DELEGATE, add_help_option=False)
def diff(context: typer.Context) -> None:
    """Walk the released sequences of two runs side by side (`flame diff --help`)."""
    from parity.reports.diff import main as walk

    raise typer.Exit(walk(context.args))


@app.command()
def sweep(
    name: Annotated[str, typer.Argument(metavar="SWEEP", help="One of the `sweeps` of experiments.yaml.")],
    jobs: Annotated[int | None, typer.Option(metavar="J", min=1, help="So many at once; else what cores and memory hold.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what is there, what isn't, and what stands in its way.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Run what is only unwise; never what can't work.")] = False,
    experiments: Annotated[Path | None, typer.Option(metavar="FILE", help="Instead of ./experiments.yaml.")] = None,
    runs: RunsFolder = Path("runs"),
) -> None:
    """Simulate a run-set over a grid or list of points; what is there already isn't run again."""
    from flame.launch.sweeping import sweep as swept

    with refusals():
        raise typer.Exit(swept.sweep(name, experiments, runs, jobs, consoles.out(), consoles.err(), dry_run=dry_run, force=force))


@app.command()
def conditions(
    names: Annotated[list[str] | None, typer.Argument(metavar="[ONE OTHER]", help="Two to compare: RUN_SET/BASELINE, or a run.")] = None,
    experiments: Annotated[Path | None, typer.Option(metavar="FILE", help="Instead of ./experiments.yaml.")] = None,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON schema of experiments.yaml, for editors.")] = False,
) -> None:
    """List the conditions of experiments.yaml with their fingerprints, or show where two differ."""
    from flame.launch.cli import conditions as listed

    with refusals():
        if schema:
            raise typer.Exit(listed.print_schema())
        out = consoles.out()
        raise typer.Exit(listed.show_difference(names, experiments, out) if names else listed.list_conditions(experiments, out))


@app.command()
def replay(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run directory.")],
    node: Annotated[str | None, typer.Option(metavar="NODE", help="Only this node: aggregator, t0, ...")] = None,
    until: Annotated[int | None, typer.Option(metavar="STEP", help="Up to and including this step.")] = None,
    show: Annotated[
        bool, typer.Option("--print", help="Print the steps: event, released rows, state; with --until, what the node holds there.")
    ] = False,
) -> None:
    """Feed a run's journals to fresh machines; every effect must come out again, byte for byte."""
    from flame.launch.results.replaying import replay_run

    with refusals():
        raise typer.Exit(replay_run(run, node, until, show))


@app.command()
def resume(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The directory of a run that was cut short, or is to be forked.")],
    fork_at: Annotated[int | None, typer.Option(metavar="CYCLE", help="Simulate what follows if something changes there.")] = None,
    sets: Annotated[list[str] | None, typer.Option("--set", metavar="A.B=VALUE", help="With --fork-at: what changes. Repeatable.")] = None,
) -> None:
    """Go on with a run that was killed or stopped, from its last checkpoint; a simulation to the same end. Or fork it."""
    from flame.config.errors import ConfigError
    from flame.launch.forking import fork_run
    from flame.launch.resuming import resume_run

    with refusals():
        if fork_at is not None:
            raise typer.Exit(fork_run(run, fork_at, sets or [], consoles.err()))
        if sets:
            raise ConfigError("a run goes on with the condition that it has", "fork it: `--fork-at CYCLE --set ...`")
        raise typer.Exit(resume_run(run, consoles.err()))


@app.command()
def worker(
    join: Annotated[str, typer.Option("--join", metavar="HOST:PORT", help="The run's broker.")],
    run: Annotated[str, typer.Option("--run", metavar="ID", help="The run: the name of its directory.")],
    slot: Annotated[str | None, typer.Option(metavar="NAME", help="As which worker; else as the first that is missing.")] = None,
    user: Annotated[str | None, typer.Option("--broker-user", metavar="NAME", help="Its password: $FLAME_BROKER_PASSWORD.")] = None,
    ca: Annotated[str | None, typer.Option("--broker-ca", metavar="FILE", help="The broker's authority, for TLS.")] = None,
    wait: Annotated[float, typer.Option(metavar="S", help="How long to wait for the run to invite.", callback=over_zero)] = 120.0,
    runs: RunsFolder = Path("runs"),
) -> None:
    """Join a run that goes on elsewhere (`flame run --remote`): host some of its trainers until it ends."""
    from flame.launch.processes.joining import join as joined

    with refusals():
        raise typer.Exit(joined(join, run, slot, user, ca, wait, runs, consoles.err()))


@app.command()
def probe(
    broker: Annotated[
        str, typer.Argument(metavar="HOST:PORT", help="A broker. Another host answers through it: `flame probe HOST:PORT --answer` there.")
    ],
    answer: Annotated[bool, typer.Option("--answer", help="Be the one who is asked, until Ctrl-C or --for.")] = False,
    for_s: Annotated[float, typer.Option("--for", metavar="S", help="With --answer: how long.", callback=over_zero)] = 600.0,
    user: Annotated[str | None, typer.Option("--broker-user", metavar="NAME", help="Its password: $FLAME_BROKER_PASSWORD.")] = None,
    ca: Annotated[str | None, typer.Option("--broker-ca", metavar="FILE", help="The broker's authority, for TLS.")] = None,
) -> None:
    """Whether a broker lets one in, how fast it is, and what the hosts at its other side have: versions, devices, data, model, clock."""
    from flame.launch.processes import probing

    with refusals():
        raise typer.Exit(
            probing.answer(broker, user, ca, for_s, consoles.err()) if answer else probing.probe(broker, user, ca, consoles.out())
        )


@app.command()
def replicate(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run directory.")],
    count: Annotated[int, typer.Option("-n", "--count", metavar="N", min=1, help="How many more.")] = 3,
    runs: Annotated[Path | None, typer.Option(metavar="DIR", help="Where they are made (replicates, beside RUN).")] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Run what is only unwise.")] = False,
) -> None:
    """Run the condition of RUN again, in its world: what `flame parity --floor` takes."""
    from flame.launch.replicate import replicate as again

    with refusals():
        raise typer.Exit(again(run, count, runs, yes=yes, force=force))


@app.command()
def calibrate(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="A real run, and replicates of it.")],
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Instead of calibrated.json in the first RUN.")] = None,
) -> None:
    """Measure what real runs took beyond their model, and what a simulation that draws it gains."""
    from flame.launch.residuals import calibrate as measure

    with refusals():
        raise typer.Exit(measure(runs, out, consoles.out()))
