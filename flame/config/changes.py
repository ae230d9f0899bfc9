"""What changes in mid-run: policies of the aggregator, as a cycle opens. A fork of a run is its condition with one change more.

A change is part of the condition, so both worlds see it at the same cycle, and a run with one is its parent, bit for bit, up
to there. Only what the aggregator alone decides by may change: trainers know nothing of cycles.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

from pydantic import JsonValue, PositiveInt, ValidationError, model_validator

from flame.config.errors import explain
from flame.config.frozen import Frozen
from flame.config.layers import Layer, Patch, settled, stack

if TYPE_CHECKING:
    from flame.config.condition import Condition

C = TypeVar("C", bound="Condition")

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


def governed(condition: C, changes: Sequence[Change]) -> dict[int, C]:
    """The conditions from each change on, each with those before it. Raises ValueError for changes that can't be, or are out of order."""
    cycles = [change.cycle for change in changes]
    if cycles != sorted(set(cycles)):
        raise ValueError("`changes` are out of order; write each cycle once, the first one first")
    plain = condition.model_dump(mode="json", exclude={"changes"})
    made: dict[int, C] = {}
    for change in changes:
        below = [Layer("the condition", plain)]
        plain = stack(below, change.patches)
        try:
            made[change.cycle] = settled(type(condition).strict, plain, below, change.patches)
        except ValidationError as error:
            told = explain(error, type(condition), plain)
            raise ValueError(f"what changes at cycle {change.cycle} can't be: {told.what}; {told.hint}") from None
    return made
