"""Which runs the arms of figs.yaml stand for, and whether a figure may show them together."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path

from flame.analysis.comparison import apart, one_arm, same_condition
from flame.analysis.finished import Own, own
from flame.analysis.learned import Learned
from flame.config.errors import ConfigError, unknown
from flame.config.experiments import Experiments
from flame.figures.families import Family
from flame.figures.looks import assigned
from flame.figures.scene import Shown
from flame.figures.spec import Arm, Figs
from flame.telemetry.reader import TelemetryError
from flame.telemetry.rundir import RunDir

Given = Mapping[str, Sequence[Path]]
"""Run directories from the command line, instead of what the file says of an arm."""


def given(pairs: Sequence[str]) -> dict[str, list[Path]]:
    """`label=DIR`, each label once for every seed. Raises ConfigError for what is none."""
    found: dict[str, list[Path]] = {}
    for pair in pairs:
        label, sign, path = pair.partition("=")
        if not (sign and label and path):
            raise ConfigError(f"`--run {pair}` is not of the form `label=DIR`", "write it like `--run fwdllm=runs/<run>`")
        found.setdefault(label, []).append(Path(path))
    return found


class Cast:
    """The arms of a file, each read once."""

    def __init__(self, figs: Figs, runs: Path, instead: Given, *, blind: bool) -> None:
        """Raises ConfigError where an arm has no runs, or one is named that there isn't."""
        for key in instead:
            if key not in figs.arms:
                raise unknown("arm", key, list(figs.arms), f" of {figs.path.name} (--run)")
        runs_of = {key: _runs(key, arm, figs, runs) for key, arm in figs.arms.items() if key not in instead}
        runs_of |= {key: [_opened(key, path) for path in paths] for key, paths in instead.items()}
        self._order = list(figs.arms)
        named = _look_names(self._order, figs, runs_of)
        looks = assigned(list(dict.fromkeys(named.values())), figs.looks)
        self._shown = {
            key: Shown(key, looks[named[key]].shown(blind=blind) if named[key] in figs.looks else key, looks[named[key]], runs_of[key])
            for key in self._order
        }
        for key, learned in runs_of.items():
            one_arm(f"arms.{key}", [each.run for each in learned], "name the runs of one condition with `dirs`, or some with `seeds`")

    @property
    def all(self) -> list[Shown]:
        """Every arm, in order."""
        return [self._shown[key] for key in self._order]

    def of(self, name: str, figure: Family) -> list[Shown]:
        """The arms of a figure. Raises ConfigError where they may not stand in one, or lack what it shows."""
        arms = [self._shown[key] for key in figure.arms or self._order]
        runs = [learned.run for arm in arms for learned in arm.runs]
        if not figure.mixed:
            try:
                same_condition(runs)
            except ConfigError as error:
                raise ConfigError(f"figures.{name}: {error.what}", "compare runs of one run-set, or say `mixed: true`") from None
        twins = next(((one, two) for one, two in combinations(arms, 2) if one.look == two.look), None)
        if twins is not None:
            raise ConfigError(
                f"figures.{name}: arms `{twins[0].key}` and `{twins[1].key}` have one look", "give one of them another `look`"
            )
        low = next((run for run in runs if figure.needs_full and run.world.level != "full"), None)
        if low is not None:
            raise ConfigError(
                f"figures.{name} needs telemetry `full`, and `{low.label}` has `{low.world.level}`", "run it with --level full"
            )
        return arms


def _look_names(order: Sequence[str], figs: Figs, runs: Mapping[str, Sequence[Learned]]) -> dict[str, str]:
    """The name of each arm's look: the one it asks for, that of its key, that of its baseline if no other arm has it, else a spare one."""
    asked = {key: figs.arms[key].look or (key if key in figs.looks else None) for key in order}
    free = {key: runs[key][0].run.condition.baseline for key in order if asked[key] is None}
    taken = [*asked.values(), *free.values()]
    return {key: asked[key] or (free[key] if free[key] in figs.looks and taken.count(free[key]) == 1 else key) for key in order}


def _runs(key: str, arm: Arm, figs: Figs, runs: Path) -> list[Learned]:
    if arm.dirs is not None:
        return [_opened(key, figs.folder / path) for path in arm.dirs]
    run_set, baseline = arm.run_set or "", arm.baseline or key
    its = own(runs, run_set, figs.registry, arm.world)
    found = {seed: run for (name, seed), run in sorted(its.runs.items(), key=lambda item: item[0]) if name == baseline}
    missing = [seed for seed in arm.seeds or () if seed not in found]
    if not found or missing:
        _refuse_unknown(key, arm, figs.registry, its)
        which = f" of seed {missing[0]}" if missing else ""
        what = f"no finished {arm.world} run{which} of `{run_set}`, baseline `{baseline}`, is in `{runs}`"
        raise ConfigError(
            f"arms.{key}: {what}{_instead(its, baseline)}",
            f"`flame run {run_set} --only {baseline} --mode {arm.world}`, or give `dirs` or `--run {key}=DIR`",
        )
    return [_read(key, run) for seed, run in found.items() if arm.seeds is None or seed in arm.seeds]


def _refuse_unknown(key: str, arm: Arm, registry: Experiments | None, its: Own) -> None:
    """Raises ConfigError for a run-set, or a baseline of it, that neither experiments.yaml nor the folder of runs knows."""
    run_set, baseline = arm.run_set or "", arm.baseline or key
    if registry is None:
        return
    known = registry.run_sets.get(run_set.replace("_", "-"))
    if known is None and not its.runs:
        raise unknown("run-set", run_set, list(registry.run_sets), f" in arms.{key}")
    if known is not None and baseline not in known.baselines:
        raise unknown("baseline", baseline, known.baselines, f" of run-set `{run_set}` in arms.{key}")


def _instead(its: Own, baseline: str) -> str:
    """What is there of that name, and why it isn't taken."""
    other = its.others.get(baseline)
    taken = next((run.condition for (name, _), run in its.runs.items() if name == baseline), None)
    wanted = its.written.get(baseline) or taken
    return f"; `{other.label}` is another condition: {apart(wanted, other)}" if other and wanted else ""


def _opened(key: str, path: Path) -> Learned:
    try:
        run = RunDir(path)
        run.condition, run.world  # noqa: B018
    except TelemetryError as error:
        raise ConfigError(f"arm `{key}`: {error}", "give run directories, as `flame runs` lists them") from None
    return _read(key, run)


def _read(key: str, run: RunDir) -> Learned:
    try:
        learned = Learned(run)
    except TelemetryError as error:
        raise ConfigError(f"arm `{key}`: `{run.label}`: {error}", "take that run away, or choose others with `seeds` or `dirs`") from None
    if not learned.evaluations.height:
        raise ConfigError(f"arm `{key}`: `{run.label}` has no evaluation", "give a run that was evaluated")
    return learned
