"""The base of every policy: a frozen configuration that refuses keys it doesn't know."""

from typing import Any

from pydantic import BaseModel, BeforeValidator, ConfigDict


class Policy(BaseModel):
    """A named choice with its numbers. Off is a value (`constant`, `always_full`), never a branch."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def _spelled_out(value: Any) -> Any:
    return {"type": value} if isinstance(value, str) else value


BY_NAME = BeforeValidator(_spelled_out)
"""Lets a configuration write `select: random` for `select: {type: random}`."""
