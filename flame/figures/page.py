"""Pictures for the scripts that look at one run or a few: E1 to E5, overlays, phases, decay, skew."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import orjson
import polars as pl

from flame.analysis.comparison import one_arm
from flame.analysis.finished import ended, whole
from flame.analysis.learned import Learned
from flame.analysis.phases import phases
from flame.analysis.summary import summary
from flame.analysis.tables import into
from flame.config.errors import ConfigError
from flame.figures.canvas import legend_above, panel, save
from flame.figures.families.bars import ProductivityBars
from flame.figures.families.family import Family
from flame.figures.families.learning import Learning
from flame.figures.families.sessions import Sessions
from flame.figures.families.stacked import Bytes, Utilisation, draw_rows
from flame.figures.looks import REGISTRY, SPARE, assigned
from flame.figures.scene import Scene, Shown
from flame.telemetry.reader import TelemetryError
from flame.telemetry.rundir import RunDir, is_run

EXPERIMENTS: Mapping[str, Family] = {
    "e1-accuracy": Learning(), "e1-loss": Learning(y="loss"), "e2-utilisation": Utilisation(),
    "e3-per-pass": ProductivityBars(), "e3-per-gb": ProductivityBars(per="gb"), "e3-per-hour": ProductivityBars(per="compute_h"),
    "e4-bytes": Bytes(), "e5-sessions": Sessions(of="uploads"),
}  # fmt: skip
OVERLAYS: Mapping[str, Family] = {
    "accuracy-time": Learning(), "loss-time": Learning(y="loss"),
    "accuracy-passes": Learning(x="passes"), "accuracy-bytes": Learning(x="bytes"),
}  # fmt: skip


def taken(items: Sequence[str]) -> dict[str, list[Learned]]:
    """Runs by name: `DIR` under its baseline's, `name=DIR` under that one. Raises ConfigError for what is no run.

    A folder of runs stands for its finished simulations: the newest of each condition, and no fork.
    """
    found: dict[str, list[Learned]] = {}
    for item in items:
        name, sign, path = item.partition("=") if not Path(item).exists() else ("", "", item)
        try:
            for run in _runs(Path(path if sign or not name else item)):
                baseline = run.condition.baseline
                found.setdefault(name if sign else baseline, []).append(Learned(run))
        except TelemetryError as error:
            raise ConfigError(str(error), "give run directories, as `flame runs` lists them, or name=DIR") from None
    return found


def one(item: str) -> Learned:
    """The one run that is meant. Raises ConfigError where it is none, or a folder of several."""
    runs = [learned for group in taken([item]).values() for learned in group]
    if len(runs) > 1:
        raise ConfigError(f"`{item}` is a folder of {len(runs)} runs, and one is looked at", f"name it, such as `{runs[-1].run.path}`")
    return runs[0]


def _runs(path: Path) -> list[RunDir]:
    held = {run.run_fp: run for run in ended(path, "sim") if whole(run)} if not is_run(path) else {}
    return list(held.values()) or [RunDir(path)]


def shown(arms: Mapping[str, Sequence[Learned]]) -> list[Shown]:
    """The arms with their looks. Raises ConfigError where the runs of one aren't seeds of one condition."""
    for name, runs in arms.items():
        one_arm(name, [each.run for each in runs])
    keys = {name: name if name in REGISTRY else runs[0].run.condition.baseline for name, runs in arms.items()}
    unique = {name: key if list(keys.values()).count(key) == 1 else name for name, key in keys.items()}
    looks = assigned(list(unique.values()), REGISTRY)
    return [Shown(name, looks[unique[name]].name if name in REGISTRY else name, looks[unique[name]], runs) for name, runs in arms.items()]


def draw(pictures: Mapping[str, Family], scene: Scene, out: Path) -> Iterator[Path]:
    """Save those pictures for which the telemetry is enough."""
    into(out)
    full = all(each.run.world.level == "full" for arm in scene.arms for each in arm.runs)
    for name, family in pictures.items():
        if (full or not family.needs_full) and not (isinstance(family, Learning) and family.x in ("passes", "bytes") and not full):
            yield from save(family.draw(scene).figure, out, name)


def plot_run(run: Learned, out: Path, target: float | None = None) -> list[Path]:
    """E1 to E5 of one run, and summary.json."""
    files = list(draw(EXPERIMENTS, Scene(shown({run.run.condition.baseline: [run]}), target), out))
    told = summary(run, () if target is None else (target,))
    (out / "summary.json").write_bytes(orjson.dumps(told, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
    return [*files, out / "summary.json"]


def plot_phases(arms: Mapping[str, Sequence[Learned]], out: Path) -> list[Path]:
    """Shares of measured seconds, a row for each run and side."""
    tables = {
        f"{name}, seed {each.run.condition.seed}: {who}": table
        for name, runs in arms.items()
        for each in runs
        for (who,), table in phases(each.run).group_by(["who"], maintain_order=True)
    }
    rows = [(name, dict(table.select("phase", pl.col("share").fill_null(0) * 100).iter_rows())) for name, table in tables.items()]
    parts = list(dict.fromkeys(part for _, values in rows for part in values))
    figure, axes = panel(0.9 + 0.26 * max(2, len(rows)))
    draw_rows(axes, rows, parts)
    axes.set_xlabel("share of measured time (%)")
    legend_above(figure, axes, 3)
    return save(figure, into(out), "step-timing")


def plot_shares(clients: pl.DataFrame, out: Path, name: str) -> list[Path]:
    """Class shares of each client, as a map."""
    grid = clients.pivot(on="class", index="client", values="share", maintain_order=True)
    figure, axes = panel(0.9 + 0.16 * max(6, min(30, grid.height)))
    image = axes.imshow(grid.drop("client").to_numpy(), cmap="cividis", vmin=0, vmax=1, aspect="auto")
    figure.colorbar(image, ax=axes, label="share of its samples (fraction)")
    every = max(1, grid.height // 20)
    axes.set_yticks(range(0, grid.height, every), grid["client"].to_list()[::every])
    axes.set_xticks(range(grid.width - 1))
    axes.set_xlabel("class (number)")
    axes.set_ylabel("client (name)")
    axes.grid(visible=False)
    return save(figure, out, name)


def plot_skew(cohorts: Mapping[str, pl.DataFrame], drops: pl.DataFrame, out: Path) -> list[Path]:
    """Skew of the cohorts behind each commit, a line a deal; bars: by how much accuracy fell at it."""
    figure, axes = panel(2.5)
    beside = axes.twinx()
    beside.bar(drops["version"].to_numpy(), np.maximum(drops["drop"].to_numpy(), 0.0), 0.9, color="#d9d9d9", zorder=0)
    beside.set_ylabel("fall of accuracy (fraction)")
    beside.grid(visible=False)
    axes.set_zorder(beside.get_zorder() + 1)
    axes.patch.set_visible(False)
    for look, (name, table) in zip(SPARE, cohorts.items(), strict=False):
        held = table.group_by(commit=pl.col("model_version") + 1).agg(pl.col("skew").mean()).sort("commit")
        every = max(1, held.height // 6)
        axes.plot(held["commit"], held["skew"], linestyle=look.line, color=look.colour, marker=look.marker, markevery=every, label=name)
    axes.set_xlabel("commits (count)")
    axes.set_ylabel("skew of the cohort (total variation)")
    axes.set_ylim(bottom=0)
    legend_above(figure, axes, 3)
    return save(figure, out, "skew")
