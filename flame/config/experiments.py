"""experiments.yaml, the one registry: defaults, baselines, run-sets and sweeps, resolved into frozen conditions.

    defaults < the baseline < the run-set's shared condition < the run-set's `override` for the baseline < flags

A baseline holds names of policies and their numbers, nothing else. A run-set holds the condition that its
baselines share, their names, and its seeds. Which world a run is carried out in, and how, is no part of
either: that comes from the command line, because it may not change a result.

Names become tokens of a run directory's name, `<time>_<run-set>_<baseline>_n<N>_s<seed>_<world>`, so a
run-set has no underscore, and no token of a baseline looks like one of the others.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

import flame
from flame.config.condition import Condition
from flame.config.errors import POLICIES, ConfigError, Place, check_mapping, explain, shown, unknown
from flame.config.layers import Layer, Patch, height, read_file, settled, stack, without, writer
from flame.config.stops import StopRules
from flame.config.sweeps import KEYS, Point, Sweep, check_apart, patches, sweep

FILE = "experiments.yaml"
SECTIONS = ("baselines", "defaults", "run_sets", "sweeps")
OWN = ("about", "baselines", "override", "seeds")
"""Keys of a run-set that are no fields of the condition."""
SHARED = tuple(name for name in Condition.model_fields if name not in ("baseline", "seed"))

UNSAID = Condition(stop=StopRules(cycles=1)).model_dump(mode="json", exclude={"stop", "baseline", "seed"})
"""What a field is that nobody sets."""
CEILING = ("stop", "wall_s")
"""What `defaults` has of it is for runs that end by a count: a target brings a longer one (`flame.config.stops`)."""

RUN_SET = re.compile(r"[a-z][a-z0-9-]*")
BASELINE = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
OTHER_TOKEN = re.compile(r"[ns]\d+|real|sim")


@dataclass(frozen=True, slots=True)
class RunSet:
    """What is run together: a shared condition, the baselines that share it, its seeds."""

    name: str
    about: str
    baselines: tuple[str, ...]
    seeds: tuple[int, ...]
    shared: Mapping[str, Any]
    override: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Resolved:
    """One condition to run. changed: fields that an override or a flag set for it, and which."""

    run_set: str
    condition: Condition
    changed: Mapping[str, str]


class Experiments:
    """The registry of one file."""

    def __init__(self, path: Path, sections: Mapping[str, Any]) -> None:
        """Raises ConfigError for whatever the file holds that can't be meant."""
        self.path = path
        _refuse_unknown("key", sections, SECTIONS, f" in {path.name}")
        self.defaults = _fields(sections, "defaults", SHARED)
        blocks = check_mapping(sections.get("baselines") or {}, "baselines")
        self.baselines = {name: _baseline(name, block) for name, block in blocks.items()}
        sets = check_mapping(sections.get("run_sets") or {}, "run_sets")
        self.run_sets = {name: _run_set(name, block, self.baselines) for name, block in sets.items()}
        swept = check_mapping(sections.get("sweeps") or {}, "sweeps")
        self.sweeps = {name: _sweep(name, block) for name, block in swept.items()}

    def resolve(
        self,
        run_set: str,
        *,
        only: Sequence[str] | None = None,
        seeds: Sequence[int] | None = None,
        patches: Sequence[Patch] = (),
    ) -> list[Resolved]:
        """The conditions of a run-set, baseline by baseline, seed by seed; `demo_all` is read as `demo-all`.

        Raises ConfigError at the first that can't be.
        """
        chosen = self.run_sets.get(run_set.replace("_", "-"))
        if chosen is None:
            raise unknown("run-set", run_set, list(self.run_sets), f" in {self.path.name}")
        for name in only or ():
            if name not in chosen.baselines:
                raise unknown("baseline", name, chosen.baselines, f" in run-set `{run_set}` (--only)")
        for patch in patches:
            if patch.path[0] in ("seed", "baseline"):
                flag = "--seeds 1,2,3" if patch.path[0] == "seed" else "--only NAME"
                raise ConfigError(f"`{patch.flag}`: a run-set has its own `{patch.path[0]}`s", f"give `{flag}`")
        wanted = [name for name in chosen.baselines if not only or name in only]
        return [self._resolve(chosen, name, seed, patches) for name in wanted for seed in seeds or chosen.seeds]

    def swept(self, name: str) -> list[tuple[Point, Resolved]]:
        """The conditions of a sweep: point by point, baseline by baseline, seed by seed, no two the same. Raises ConfigError."""
        chosen = self.sweeps.get(name.replace("_", "-"))
        if chosen is None:
            raise unknown("sweep", name, list(self.sweeps), f" in {self.path.name}")
        found = [
            (point, resolved)
            for point in chosen.points
            for resolved in self.resolve(chosen.run_set, only=chosen.only, seeds=chosen.seeds, patches=patches(chosen.name, point))
        ]
        check_apart(chosen.name, [(point, resolved.condition) for point, resolved in found])
        return found

    def _resolve(self, run_set: RunSet, baseline: str, seed: int, patches: Sequence[Patch]) -> Resolved:
        override = run_set.override.get(baseline, {})
        layers = [
            Layer("defaults", self.defaults),
            Layer(f"baselines.{baseline}", self.baselines[baseline]),
            Layer(f"run_sets.{run_set.name}", run_set.shared),
            Layer(f"run_sets.{run_set.name}.override.{baseline}", override),
        ]
        plain = stack(layers, patches, UNSAID) | {"baseline": baseline, "seed": seed}
        stop = plain.get("stop")
        if isinstance(stop, Mapping) and stop.get("target") is not None and height(CEILING, layers, patches) == 0:
            plain = without(plain, CEILING)

        def where(place: Place) -> str:
            return writer(place, layers, patches) if place else f" for `{baseline}` in run_sets.{run_set.name}"

        changed = dict.fromkeys(override, "override") | {patch.path[0]: patch.flag for patch in patches}
        try:
            return Resolved(run_set.name, settled(Condition.strict, plain, layers, patches), changed)
        except ValidationError as error:
            raise explain(error, Condition, plain, where) from None


def load(path: Path | None = None) -> Experiments:
    """The registry in `path`, or in the experiments.yaml of the current folder, or in the one of the source tree."""
    places = [path] if path else [Path(FILE), Path(flame.__file__).parent.parent / FILE]
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        raise ConfigError(f"there is no `{places[0]}`", "run it where experiments.yaml is, or give `--experiments FILE`")
    return Experiments(found, check_mapping(read_file(found), found.name))


def condition_of(plain: Mapping[str, Any], where: Any = lambda place: "") -> Condition:
    """The condition that plain values say, typed as written: "10" is no number. Raises ConfigError in words."""
    try:
        return Condition.strict(plain)
    except ValidationError as error:
        raise explain(error, Condition, plain, where) from None


def parse_seeds(text: str) -> list[int]:
    """`1,2,3` as numbers. Raises ConfigError for anything else."""
    parts = [part.strip() for part in text.split(",")]
    wrong = next((part for part in parts if not part.isdecimal()), None)
    if wrong is not None:
        raise ConfigError(f"`--seeds {text}`: `{wrong}` is no whole number from 0 on", "write it like `--seeds 1,2,3`")
    return _distinct([int(part) for part in parts], f"--seeds {text}")


def _baseline(name: str, block: Any) -> Mapping[str, Any]:
    _check_name("baseline", name, BASELINE, "words of small letters and digits with single underscores between them")
    token = next((part for part in name.split("_") if OTHER_TOKEN.fullmatch(part)), None)
    if token is not None:
        raise ConfigError(
            f"the baseline `{name}` holds `{token}`, which reads as another part of a run directory's name",
            "choose a name without words like `n10`, `s1`, `real`, `sim`",
        )
    return _fields({name: block}, name, POLICIES, "baselines.")


def _run_set(name: str, block: Any, known: Mapping[str, Any]) -> RunSet:
    _check_name("run-set", name, RUN_SET, "small letters, digits and hyphens, no underscore")
    where = f"run_sets.{name}"
    values = _fields({name: block}, name, (*OWN, *SHARED), "run_sets.")
    baselines = _list(values, "baselines", where)
    override = check_mapping(values.get("override") or {}, f"{where}.override")
    for wanted, listed, place in ((baselines, known, "baselines"), (override, baselines, "override")):
        for each in wanted:
            if each not in listed:
                raise unknown("baseline", str(each), list(listed), f" in {where}.{place}")
    seeds = _distinct(_list(values, "seeds", where), f"{where}.seeds")
    return RunSet(
        name, str(values.get("about", "")), tuple(_distinct(baselines, f"{where}.baselines")), tuple(seeds),
        {key: value for key, value in values.items() if key not in OWN},
        {key: _fields(override, key, SHARED, f"{where}.override.") for key in override},
    )  # fmt: skip


def _sweep(name: str, block: Any) -> Sweep:
    _check_name("sweep", name, RUN_SET, "small letters, digits and hyphens, no underscore")
    values = _fields({name: block}, name, KEYS, "sweeps.")
    for key in ("only", "seeds"):
        if key in values:
            _distinct(_list(values, key, f"sweeps.{name}"), f"sweeps.{name}.{key}")
    return sweep(name, values)


def _fields(section: Mapping[str, Any], name: str, known: Sequence[str], before: str = "") -> Mapping[str, Any]:
    """One block of fields; an empty one may be left blank."""
    block = check_mapping(section.get(name) or {}, f"{before}{name}")
    _refuse_unknown("key", block, known, f" in {before}{name}")
    return block


def _refuse_unknown(kind: str, given: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    for key in given:
        if key not in known:
            raise unknown(kind, key, known, where)


def _list(values: Mapping[str, Any], key: str, where: str) -> list[Any]:
    value = values.get(key)
    if not isinstance(value, list) or not value:
        example = "[fwdllm]" if key == "baselines" else "[1, 2, 3]"
        raise ConfigError(f"`{where}.{key}` is {shown(value)}", f"list at least one: `{key}: {example}`")
    return value


def _distinct(values: list[Any], where: str) -> list[Any]:
    twice = next((value for number, value in enumerate(values) if value in values[:number]), None)
    if twice is not None:
        raise ConfigError(f"`{where}` names {shown(twice)} twice", "name each once")
    return values


def _check_name(kind: str, name: str, form: re.Pattern[str], words: str) -> None:
    if not form.fullmatch(name):
        raise ConfigError(f"`{name}` can't be the name of a {kind}: it becomes a part of directory names", f"use {words}")
