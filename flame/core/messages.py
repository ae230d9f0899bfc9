"""What nodes say to each other. Data only: nothing here can be executed.

Fields whose value depends on the world (`sent_now`) are encoded at a fixed width, so that a message
has as many bytes simulated as it has for real.
"""

from dataclasses import dataclass, field
from typing import Literal

from flame.core.profile import Profile
from flame.core.tensor import Tensor

AGGREGATOR = "aggregator"


@dataclass(slots=True)
class Payload:
    """Tensors on the wire.

    Down: `full` (theta, and u for guided perturbations), `none` (VAR_BAD: the trainer keeps its weights),
    `delta` and `replay` (what leads from the weights of version `base` to those of the assign's).
    Up: `dense` (delta), `seeds` (scalars, and choice where there is one).
    """

    kind: str
    tensors: dict[str, Tensor] = field(default_factory=dict)
    base: int | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of the tensors' data; what the codec puts around them is no part of it."""
        return sum(tensor.nbytes for tensor in self.tensors.values())


@dataclass(slots=True)
class Assign:
    """One piece of work for one trainer.

    id: unique in the run. draw: how many assigns of this (version, bin) the trainer had before.
    stamp: logical time of what caused the dispatch. due: stamp at which the update counts.
    sent_now: the sender's `now`.
    """

    id: int
    version: int
    data_id: int
    iteration: int
    draw: int
    stamp: int
    due: int
    sent_now: int
    payload: Payload
    kind: Literal["assign"] = "assign"


@dataclass(slots=True)
class Update:
    """The answer to one assign; it echoes the assign's id, version, bin and iteration. stamp = its due."""

    id: int
    version: int
    data_id: int
    iteration: int
    stamp: int
    payload: Payload
    samples: int
    loss: float
    utility: float
    derivative: float
    kind: Literal["update"] = "update"


@dataclass(slots=True)
class Weights:
    """Full weights for a trainer that holds none (a new incarnation); the session layer's `resend`."""

    version: int
    payload: Payload
    kind: Literal["weights"] = "weights"


@dataclass(slots=True)
class Presence:
    """A trainer is here. init, data, code: digests that must agree with the aggregator's."""

    node: str
    incarnation: str
    profile: Profile
    init: str
    data: str
    code: str
    kind: Literal["presence"] = "presence"


@dataclass(slots=True)
class Heartbeat:
    """The main loop of a worker is alive.

    busy: ids of the assigns that it works on or holds. computing_ns: how long the running compute takes so far.
    """

    worker: str
    incarnation: str
    busy: list[int]
    computing_ns: int
    kind: Literal["heartbeat"] = "heartbeat"


@dataclass(slots=True)
class End:
    """The run is over."""

    reason: str
    kind: Literal["end"] = "end"


Message = Assign | Update | Weights | Presence | Heartbeat | End
