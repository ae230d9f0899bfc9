"""figs.yaml: whose runs, how they are called and drawn, and which figures.

    runs: runs                          # folder of run directories; paths are relative to this file
    experiments: experiments.yaml       # for sweeps
    target: 0.84                        # accuracy; a figure may have its own
    arms:
      fwdllm: {run_set: main}           # what the run-set runs: each seed's newest finished simulation; the key is the baseline
      ours: {run_set: main, baseline: fluxtune_stable, look: fluxtune_stable}
      other: {dirs: [runs/A, runs/B]}   # or run directories, one a seed
    looks:
      fluxtune_stable: {name: FluxTune, blind: Ours, own: true}
    figures:
      accuracy-time: {family: learning, x: time}
      cost: {family: bars, cost: passes, arms: [fwdllm, ours]}

Everything is checked before anything is read or drawn.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

import orjson
from pydantic import BaseModel, Field, ValidationError, field_validator, model_validator

from flame.config.errors import ConfigError, check_mapping, explain, shown, unknown
from flame.config.experiments import Experiments, load
from flame.config.frozen import Frozen
from flame.config.layers import read_file
from flame.figures.families import FAMILIES, Family
from flame.figures.families.sweep import Sweep
from flame.figures.looks import MARKERS, REGISTRY, Look

KEYS = ("runs", "experiments", "target", "arms", "looks", "figures")
M = TypeVar("M", bound=BaseModel)
COLOUR = re.compile(r"#[0-9A-Fa-f]{6}")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


class Arm(Frozen):
    """Runs of one condition, a seed each: of a run-set, or these directories. look: in `looks`, else its baseline's."""

    run_set: str | None = None
    baseline: str | None = None
    seeds: tuple[int, ...] | None = None
    world: Literal["sim", "real"] = "sim"
    dirs: tuple[str, ...] | None = None
    look: str | None = None

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.run_set is None) == (self.dirs is None):
            raise ValueError("an arm is of a `run_set` or of `dirs`; give one of the two")
        if self.seeds is not None and not self.seeds:
            raise ValueError("`seeds` is empty; list them, or leave it out for all that are there")
        if self.dirs is not None and not self.dirs:
            raise ValueError("`dirs` is empty; give a run directory for each seed")
        if self.dirs is not None and (self.baseline or self.seeds):
            raise ValueError("`baseline` and `seeds` choose runs of a `run_set`, and `dirs` names them; take them away")
        return self


class Appearance(Frozen):
    """What a look changes; the rest is the registry's."""

    name: str | None = None
    blind: str | None = None
    own: bool | None = None
    colour: str | None = None
    line: Literal["-", "--", "-.", ":"] | None = None
    marker: str | None = None

    @field_validator("colour")
    @classmethod
    def _a_colour(cls, colour: str | None) -> str | None:
        if colour is not None and not COLOUR.fullmatch(colour):
            raise ValueError(f'`{colour}` is no colour; write it in hex and in quotes, like `"#0072B2"`')
        return colour

    @field_validator("marker")
    @classmethod
    def _a_marker(cls, marker: str | None) -> str | None:
        if marker is not None and marker not in MARKERS:
            raise ValueError(f"`{marker}` is no marker; give one of {' '.join(MARKERS)}")
        return marker


class Head(Frozen):
    """The file without its arms, looks and figures."""

    runs: str = "runs"
    experiments: str = "experiments.yaml"
    target: float | None = Field(default=None, gt=0, le=1)


class Figs:
    """A checked figs.yaml. folder: where its paths begin. registry: of the experiments.yaml that it names, where there is one."""

    def __init__(self, path: Path) -> None:
        """Raises ConfigError for whatever it holds that can't be meant."""
        self.path, self.folder = path, path.parent
        sections = _sections(path)
        self.head = _parsed(Head, {key: sections[key] for key in ("runs", "experiments", "target") if key in sections}, f" in {path.name}")
        self.arms = {name: _parsed(Arm, block, f" in arms.{name}") for name, block in self._blocks(sections, "arms")}
        self.looks = _looks({name: _parsed(Appearance, block, f" in looks.{name}") for name, block in self._blocks(sections, "looks")})
        self.figures = {name: _figure(name, block) for name, block in self._blocks(sections, "figures")}
        self.registry = self._at_hand()
        if not self.figures:
            raise ConfigError(f"`figures` of {path.name} is empty", "give one, such as `accuracy: {family: learning}`")
        for name, figure in self.figures.items():
            self._check(name, figure)
        for key, arm in self.arms.items():
            if arm.look is not None and arm.look not in self.looks:
                raise unknown("look", arm.look, list(self.looks), f" in arms.{key}")

    def _at_hand(self) -> Experiments | None:
        """The registry of run-sets and sweeps, where it is wanted and there; only a sweep can't do without."""
        file, swept = self.folder / self.head.experiments, any(not figure.of_arms for figure in self.figures.values())
        wanted = swept or any(arm.run_set is not None for arm in self.arms.values())
        if swept and not file.is_file():
            raise ConfigError(f"there is no `{file}`, of which a sweep is drawn", f"give `experiments: FILE` in {self.path.name}")
        return load(file) if wanted and file.is_file() else None

    @staticmethod
    def _blocks(sections: Mapping[str, Any], name: str) -> list[tuple[str, Any]]:
        return list(check_mapping(sections.get(name) or {}, name).items())

    def _check(self, name: str, figure: Family) -> None:
        """Raises ConfigError for a figure that could never be drawn."""
        if not NAME.fullmatch(name):
            raise ConfigError(f"`{name}` can't be the name of a figure: it becomes a file name", "use letters, digits, `.`, `_` and `-`")
        if figure.needs_target and figure.target is None and self.head.target is None:
            raise ConfigError(f"figures.{name} needs a target accuracy", "give `target: 0.8`, in it or for the whole file")
        for arm in figure.arms or ():
            if arm not in self.arms:
                raise unknown("arm", arm, list(self.arms), f" in figures.{name}")
        if isinstance(figure, Sweep) and self.registry is not None and figure.sweep.replace("_", "-") not in self.registry.sweeps:
            raise unknown("sweep", figure.sweep, list(self.registry.sweeps), f" in figures.{name}")
        if figure.of_arms and not (figure.arms or self.arms):
            raise ConfigError(f"figures.{name} has no arms", "give `arms` for the file, such as `arms: {fwdllm: {run_set: main}}`")

    def target(self, figure: Family) -> float | None:
        """The target accuracy of a figure."""
        return figure.target if figure.target is not None else self.head.target


def _sections(path: Path) -> Mapping[str, Any]:
    if not path.is_file():
        raise ConfigError(f"there is no `{path}`", "give a figs.yaml; docs/figures.md shows one")
    sections = check_mapping(read_file(path) or {}, path.name)
    for key in sections:
        if key not in KEYS:
            raise unknown("key", key, KEYS, f" in {path.name}")
    return sections


def _figure(name: str, block: Any) -> Family:
    where = f" in figures.{name}"
    fields = check_mapping(block, f"figures.{name}")
    if "family" not in fields:
        raise ConfigError(f"`family` is missing{where}", f"give one of {', '.join(sorted(FAMILIES))}")
    family = fields["family"]
    if not isinstance(family, str) or family not in FAMILIES:
        raise unknown("family", family if isinstance(family, str) else shown(family), list(FAMILIES), where)
    return _parsed(FAMILIES[family], fields, where)


def _parsed(model: type[M], block: Any, where: str) -> M:
    fields = dict(check_mapping(block or {}, where.removeprefix(" in ")))
    try:
        return model.model_validate_json(orjson.dumps(fields), strict=True)
    except ValidationError as error:
        raise explain(error, model, fields, lambda _: where) from None


def _looks(given: Mapping[str, Appearance]) -> dict[str, Look]:
    """The registry, with what the file changes."""
    changed = {name: appearance.model_dump(exclude_none=True) for name, appearance in given.items()}
    for name, fields in changed.items():
        missing = [key for key in ("colour", "line", "marker") if key not in fields]
        if name not in REGISTRY and missing:
            raise ConfigError(
                f"looks.{name} has no `{missing[0]}`, and there is no baseline of that name to take it from",
                f"give `colour`, `line` and `marker`, or name one of {', '.join(REGISTRY)}",
            )
    new = {name: Look(**({"name": name} | fields)) for name, fields in changed.items() if name not in REGISTRY}
    return REGISTRY | {name: replace(REGISTRY[name], **fields) for name, fields in changed.items() if name in REGISTRY} | new
