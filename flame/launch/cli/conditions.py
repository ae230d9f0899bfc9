"""`flame conditions`: what the registry holds, as conditions with their fingerprints, and where two of them differ."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson
from rich.console import Console

from flame.config.condition import Condition
from flame.config.editor import schema
from flame.config.errors import ConfigError
from flame.config.experiments import Experiments, load
from flame.config.fingerprint import condition_fp, run_fp
from flame.launch.screen.consoles import table
from flame.telemetry.rundir import RunDir, RunDirError

WELL, DIFFERENT = 0, 1
SIDES = ("one", "other")

Place = tuple[str, ...]


def list_conditions(experiments: Path | None, out: Console) -> int:
    """Each baseline of each run-set: what it shares with the others, and what it is with its first seed."""
    registry = load(experiments)
    rows = [
        [name, each.condition.baseline, ",".join(map(str, run_set.seeds)), condition_fp(each.condition), run_fp(each.condition)]
        for name, run_set in registry.run_sets.items()
        for each in registry.resolve(name, seeds=run_set.seeds[:1])
    ]
    out.print(table(out, ("run-set", "baseline", "seeds", "condition_fp", "run_fp"), rows, ("seeds",)))
    return WELL


def show_difference(names: Sequence[str], experiments: Path | None, out: Console) -> int:
    """Where two conditions differ, a line a field; the exit code is 1 when they do. Raises ConfigError for what isn't one."""
    if len(names) != 2:
        raise ConfigError(f"{len(names)} named, two are compared", "name two, such as `quick smoke/fwdllm`, or none to list all")
    one, other = (named(name, experiments) for name in names)
    rows = [[".".join(place), _told(here), _told(there)] for place, here, there in differences(one, other)]
    if not rows:
        out.print(f"{names[0]} and {names[1]} are the same condition, run_fp {run_fp(one)}", markup=False, soft_wrap=True)
        return WELL
    for title, name in zip(SIDES, names, strict=True):
        out.print(f" {title:<5}  {name}", markup=False, soft_wrap=True)
    out.print(table(out, ("field", *SIDES), rows, ()))
    prints = dict.fromkeys((condition_fp(one), condition_fp(other)))
    out.print(f"condition_fp {' and '.join(prints)}{', shared by both' if len(prints) == 1 else ''}")
    return DIFFERENT


def print_schema() -> int:
    """To stdout: `flame conditions --schema > experiments.schema.json`."""
    sys.stdout.buffer.write(orjson.dumps(schema(), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
    return WELL


def named(name: str, experiments: Path | None) -> Condition:
    """The condition of a run directory, of `RUN_SET/BASELINE`, or of a `RUN_SET` of one baseline; with its first seed."""
    if (Path(name) / "condition.json").is_file():
        return _stored(Path(name))
    registry = load(experiments)
    run_set, _, baseline = name.partition("/")
    found = registry.resolve(run_set, only=[baseline] if baseline else None, seeds=_first_seed(registry, run_set))
    if len(found) > 1:
        first = found[0].condition.baseline
        raise ConfigError(f"`{name}` holds {len(found)} baselines", f"name one of them, such as `{run_set}/{first}`")
    return found[0].condition


def _stored(run: Path) -> Condition:
    try:
        return RunDir(run).condition
    except RunDirError as error:
        raise ConfigError(str(error), "give another run, or RUN_SET/BASELINE") from None


def differences(one: Condition, other: Condition) -> Iterator[tuple[Place, Any, Any]]:
    """(place, here, there) of each value that isn't the same in both; None where one has no such place."""
    here, there = (dict(_leaves(each.model_dump(mode="json"))) for each in (one, other))
    for place in dict.fromkeys((*here, *there)):
        if here.get(place) != there.get(place):
            yield place, here.get(place), there.get(place)


def _first_seed(registry: Experiments, run_set: str) -> Sequence[int] | None:
    known = registry.run_sets.get(run_set.replace("_", "-"))
    return known.seeds[:1] if known else None


def _leaves(plain: Any, place: Place = ()) -> Iterator[tuple[Place, Any]]:
    entries = plain.items() if isinstance(plain, dict) else enumerate(plain) if isinstance(plain, list) else ()
    inner = [leaf for key, value in entries for leaf in _leaves(value, (*place, str(key)))]
    yield from inner or [(place, plain)]


def _told(value: Any) -> str:
    return "-" if value is None else str(value)
