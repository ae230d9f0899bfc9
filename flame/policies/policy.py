"""The base of every policy: a frozen configuration that refuses keys it doesn't know, and those that nobody hears."""

from typing import Any

from pydantic import BeforeValidator, ConfigDict

from flame.policies.heard import Hearing


class Policy(Hearing):
    """A named choice with its numbers. Off is a value (`constant`, `always_full`), never a branch."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Outside(Policy):
    """The base of a policy from outside the tree, written `type: my_pkg.module:Name` (`flame.config.outside`).

    type: where it comes from. source: digest of its module. Both are filled in where it is loaded.
    """

    type: str = ""
    source: str = ""


def _spelled_out(value: Any) -> Any:
    return {"type": value} if isinstance(value, str) else value


BY_NAME = BeforeValidator(_spelled_out)
"""Lets a configuration write `select: random` for `select: {type: random}`."""
