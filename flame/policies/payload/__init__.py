"""What an Assign carries down, given what its trainer holds, and what comes up."""

from typing import Literal

from flame.policies.payload.always_full import AlwaysFull
from flame.policies.payload.dense import Dense
from flame.policies.payload.once_per_version import OncePerVersion
from flame.policies.policy import Policy

DOWN: dict[str, AlwaysFull | OncePerVersion] = {"always_full": AlwaysFull(), "once_per_version": OncePerVersion()}
UP: dict[str, Dense] = {"dense": Dense()}


class Payloads(Policy):
    """Names of the rules for both directions. up: `dense` sends d v."""

    down: Literal["always_full", "once_per_version"] = "always_full"
    up: Literal["dense"] = "dense"


__all__ = ["DOWN", "UP", "AlwaysFull", "Dense", "OncePerVersion", "Payloads"]
