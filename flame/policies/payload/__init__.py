"""What an Assign carries down, given what its trainer holds; what an Update carries up; and how numbers travel."""

from typing import Literal

from flame.policies.payload.always_full import AlwaysFull
from flame.policies.payload.delta import Delta
from flame.policies.payload.dense import Dense
from flame.policies.payload.once_per_version import OncePerVersion
from flame.policies.payload.replay import Replay
from flame.policies.payload.rules import DownRule, Shelf, Terms, UpRule
from flame.policies.payload.seeds import Seeds
from flame.policies.payload.wire import WireDtype
from flame.policies.policy import Policy

DOWN: dict[str, DownRule] = {"always_full": AlwaysFull(), "once_per_version": OncePerVersion(), "delta": Delta(), "replay": Replay()}
UP: dict[str, UpRule] = {"dense": Dense(), "seeds": Seeds()}


class Payloads(Policy):
    """Names of the rules for both directions (docs/payloads.md), and the precision in which vectors travel.

    up: `dense` sends d v, `seeds` the scalars that it is rebuilt from. wire_dtype: `f32` is as they are computed with
    (the toy: float64), `bf16` rounds weights on their way down and vectors on their way up.
    """

    down: Literal["always_full", "once_per_version", "delta", "replay"] = "always_full"
    up: Literal["dense", "seeds"] = "dense"
    wire_dtype: WireDtype = "f32"


__all__ = [
    "DOWN",
    "UP",
    "AlwaysFull",
    "Delta",
    "Dense",
    "DownRule",
    "OncePerVersion",
    "Payloads",
    "Replay",
    "Seeds",
    "Shelf",
    "Terms",
    "UpRule",
]
