"""Sweeps of experiments.yaml: a run-set's conditions at the points of a grid, or of a list.

sweeps:
  alpha-and-bins:
    about: how skewed clients and long bins go together
    run_set: learn
    only: [fwdllm]                        # else all its baselines
    seeds: [1, 2]                         # else its own
    grid: {partition.alpha: [0.1, 1.0], max_bins: [4, 8]}
    # or: list: [{partition.alpha: 0.1, max_bins: 4}, {partition.alpha: 1.0}]
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from flame.config.condition import Condition
from flame.config.errors import ConfigError, check_mapping, shown
from flame.config.fingerprint import run_fp
from flame.config.layers import Patch

KEYS = ("about", "grid", "list", "only", "run_set", "seeds")

Point = Mapping[str, Any]
"""Field, as `a.b.c`, and its value."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """Where a run-set is run. only, seeds: None for all of its own. points: each once, in order."""

    name: str
    about: str
    run_set: str
    only: Sequence[str] | None
    seeds: Sequence[int] | None
    points: tuple[Point, ...]

    @property
    def fields(self) -> list[str]:
        """Those that any point sets, in order."""
        return list(dict.fromkeys(field for point in self.points for field in point))


def sweep(name: str, block: Mapping[str, Any]) -> Sweep:
    """What a block of the section says. Raises ConfigError, naming it."""
    where = f"sweeps.{name}"
    run_set = block.get("run_set")
    if not isinstance(run_set, str):
        raise ConfigError(f"`{where}.run_set` is {shown(run_set)}", "name the run-set that is swept")
    if ("grid" in block) == ("list" in block):
        raise ConfigError(f"`{where}` has {'both `grid` and `list`' if 'grid' in block else 'no points'}", "give one, `grid` or `list`")
    points = _grid(block["grid"], f"{where}.grid") if "grid" in block else _list(block["list"], f"{where}.list")
    twice = next((point for number, point in enumerate(points) if point in points[:number]), None)
    if twice is not None:
        raise ConfigError(f"`{where}` names the point `{worded(twice)}` twice", "name each once")
    return Sweep(name, str(block.get("about", "")), run_set, block.get("only"), block.get("seeds"), tuple(points))


def patches(name: str, point: Point) -> list[Patch]:
    """The point as patches of a condition, which say where they come from."""
    return [Patch(tuple(field.split(".")), value, f"{field}: {shown(value)} of sweeps.{name}") for field, value in point.items()]


def worded(point: Point) -> str:
    """`a.b=1 c=2`; a policy as `c=sgd(lr 0.1)`, several as `c=variance(threshold 0.3)+cap(max 3)`."""
    return " ".join(f"{field}={_short(value)}" for field, value in point.items())


def _short(value: Any) -> str:
    if isinstance(value, list) and any(isinstance(each, Mapping | str) for each in value):
        return "+".join(map(_short, value))
    if not isinstance(value, Mapping):
        return str(value)
    rest = ", ".join(f"{key} {_short(inner)}" for key, inner in value.items() if key != "type")
    return f"{value.get('type', '')}({rest})" if rest else str(value.get("type", "()"))


def check_apart(name: str, swept: Sequence[tuple[Point, Condition]]) -> None:
    """Raises ConfigError where two points make one condition: a simulation that is there would count for one of them alone."""
    seen: dict[str, Point] = {}
    for point, condition in swept:
        twin = seen.setdefault(run_fp(condition), point)
        if twin is not point:
            raise ConfigError(
                f"`sweeps.{name}`: the points `{worded(twin)}` and `{worded(point)}` are one condition, run_fp {run_fp(condition)}",
                "drop one of the two: what tells them apart is a default, or a bound of waiting (`limits`), which changes no result",
            )


def _grid(given: Any, where: str) -> list[Point]:
    axes = check_mapping(given, where)
    for field, values in axes.items():
        if not isinstance(values, list) or not values:
            raise ConfigError(f"`{where}.{field}` is {shown(values)}", f"list its values: `{field}: [..., ...]`")
    if not axes:
        raise ConfigError(f"`{where}` is empty", "give one axis at least, such as `partition.alpha: [0.1, 1.0]`")
    return [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]


def _list(given: Any, where: str) -> list[Point]:
    if not isinstance(given, list) or not given:
        raise ConfigError(f"`{where}` is {shown(given)}", "list its points: `list: [{partition.alpha: 0.1}]`")
    return [check_mapping(point, f"{where}.{number}") for number, point in enumerate(given)]
