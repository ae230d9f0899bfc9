"""What changes in mid-run: policies of the aggregator, as a cycle opens. A fork of a run is its condition with one change more.

A change is part of the condition, so both worlds see it at the same cycle, and a run with one is its parent, bit for bit, up
to there. Only what the aggregator alone decides by may change: trainers know nothing of cycles.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import JsonValue, PositiveInt, model_validator

from flame.config.frozen import Frozen
from flame.config.layers import Layer, Patch, stack

CHANGEABLE = ("select", "staleness", "rate", "commit", "server_opt", "sizes")


class Change(Frozen):
    """At the opening of `cycle` (counted from 0) the fields of `set` get new values: `{server_opt.lr: 0.1}`."""

    cycle: PositiveInt
    set: dict[str, JsonValue]

    @property
    def fields(self) -> frozenset[str]:
        """The fields of the condition that are touched."""
        return frozenset(key.partition(".")[0] for key in self.set)

    @property
    def patches(self) -> list[Patch]:
        """As the command line would set them."""
        return [Patch(tuple(key.split(".")), value, f"changes at cycle {self.cycle}: {key}") for key, value in self.set.items()]

    @model_validator(mode="after")
    def _can_change(self) -> "Change":
        odd = sorted(self.fields.difference(CHANGEABLE))
        if odd or not self.set:
            what = f"`{odd[0]}` can't change in mid-run" if odd else "`set` is empty"
            raise ValueError(f"{what}; give one of {', '.join(CHANGEABLE)}, or a key of it, such as `server_opt.lr`")
        return self


def governed(plain: Mapping[str, Any], changes: Sequence[Change]) -> dict[int, dict[str, Any]]:
    """The plain conditions from each change on, each with those before it. Raises ValueError for changes out of order."""
    cycles = [change.cycle for change in changes]
    if cycles != sorted(set(cycles)):
        raise ValueError("`changes` are out of order; write each cycle once, the first one first")
    made: dict[int, dict[str, Any]] = {}
    for change in changes:
        plain = made[change.cycle] = stack([Layer("the condition", plain)], change.patches)
    return made
