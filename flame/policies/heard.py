"""Which settings are heard, and under which others. One that nobody hears is refused: it would change a fingerprint and nothing else.

Each model lists its own as `HEARD`, and its base looks at them. A value that equals the field's default is no setting: a
stored condition has them all.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from pydantic import BaseModel, model_validator
from pydantic_core import PydanticCustomError

KIND = "says_nothing"
"""The type of the error."""


@dataclass(frozen=True, slots=True)
class Heard:
    """`key` is heard where `by`, `a.b` for an inner one, is one of `under`; or, where that is empty, none of `off`."""

    key: str
    by: str
    under: tuple[Any, ...] = ()
    off: tuple[Any, ...] = ()

    def hears(self, value: Any) -> bool:
        """Whether it is, where `by` is `value`."""
        return value in self.under if self.under else value not in self.off

    @property
    def remedy(self) -> str:
        """What makes it heard."""
        return f"use {' or '.join(f'`{self.by}: {value}`' for value in self.under)}" if self.under else f"give another `{self.by}`"


class Hearing(BaseModel):
    """A model that refuses what it doesn't hear."""

    HEARD: ClassVar[tuple[Heard, ...]] = ()

    @model_validator(mode="after")
    def _hears_all(self) -> Self:
        for rule in self.HEARD:
            now = inner(self, rule.by)
            if is_set(self, rule.key) and not rule.hears(now):
                raise silent(rule.key, rule.by, now, rule.remedy)
        return self


def silent(key: str, by: str, now: Any, remedy: str) -> PydanticCustomError:
    """The error for a `key` that nobody hears, because of `by`, which is `now`."""
    context = {"key": key, "by": by, "what": f"says nothing to `{by}: {_written(now)}`", "hint": f"drop it, or {remedy}"}
    return PydanticCustomError(KIND, "`{key}` {what}; {hint}", context)


def inner(model: Any, path: str) -> Any:
    """The value at `a.b` of a model."""
    for part in path.split("."):
        model = getattr(model, part)
    return model


def is_set(model: BaseModel, key: str) -> bool:
    """Whether a field has another value than its default."""
    return bool(getattr(model, key) != type(model).model_fields[key].default)


def heard(by: str, under: Iterable[Any], *keys: str) -> tuple[Heard, ...]:
    """Keys that are heard where `by` is one of `under`."""
    return tuple(Heard(key, by, under=tuple(under)) for key in keys)


def unheard(by: str, off: Any, *keys: str) -> tuple[Heard, ...]:
    """Keys that aren't heard where `by` is `off`."""
    return tuple(Heard(key, by, off=(off,)) for key in keys)


def _written(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
