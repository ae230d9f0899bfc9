"""How a run is carried out. Nothing here may change a decision or a bit of the model (exact tier)."""

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, NonNegativeInt, model_validator

from flame.config.errors import nearest
from flame.config.frozen import Frozen
from flame.policies.heard import unheard

OWN_BROKERS = ("embedded", "mosquitto")
DEVICE = re.compile(r"cpu|auto|cuda(:(all|\d{1,3}(,\d{1,3})*))?")
HOST_PORT = re.compile(r"[^\s:/]+:\d{1,5}|\[[0-9a-fA-F:]+\]:\d{1,5}")


def _known_broker(broker: str) -> str:
    port = int(broker.rpartition(":")[2]) if HOST_PORT.fullmatch(broker) else 0
    if broker not in OWN_BROKERS and not 0 < port < 65536:
        raise ValueError(
            f"there is no broker `{broker}`; {nearest(broker, OWN_BROKERS)}give `embedded`, `mosquitto`, or the HOST:PORT of a running one"
        )
    return broker


def _a_level(user: str) -> str:
    if not user or any(sign in user for sign in "/+#"):
        raise ValueError(f"a user's runs have topics under its name, which `{user}` can't be part of; use a name without / + #")
    return user


def _known_device(device: str) -> str:
    if not DEVICE.fullmatch(device):
        raise ValueError(f"there is no device `{device}`; give `cpu`, `auto`, `cuda:N`, `cuda:0,1` or `cuda:all`")
    return device


class World(Frozen):
    """One of the two worlds and its machinery.

    device: where torch computes, `cpu`, `auto`, or GPUs, which are for the fidelity tier alone (`flame.learn.device`).
    pin: each process of a real run keeps to a core of its own, as long as there are enough.
    broker: `embedded` (in the launcher's process tree), `mosquitto` (a private one), or HOST:PORT of a running one.
    broker_user: whom to be there, with the password of the environment; broker_ca: file of its authority, for TLS.
    workers: processes that host the trainers (real); remote: how many more join from elsewhere (`flame worker`).
    pool: compute processes (sim), 0 computes inline.
    latency: a file of `flame calibrate`, whose measured latencies a sim draws (None: nothing is ever late); draw: which draws.
    wire: `roundtrip` encodes and decodes every message in sim too. level: how much telemetry.
    blobs: whether journals keep the tensors, without which a replay can't be made.
    checkpoint: commits between two checkpoints (`flame resume`), 0 for none; None: 25 in a simulation, each for real.
    """

    HEARD = unheard("latency", None, "draw")
    kind: Literal["sim", "real"] = "sim"
    device: Annotated[str, AfterValidator(_known_device)] = "cpu"
    broker: Annotated[str, AfterValidator(_known_broker)] = "embedded"
    broker_user: Annotated[str, AfterValidator(_a_level)] | None = None
    broker_ca: str | None = None
    workers: NonNegativeInt = 2
    remote: NonNegativeInt = 0
    pin: bool = False
    pool: NonNegativeInt = 0
    prefix_cache: bool = True
    latency: str | None = None
    draw: NonNegativeInt = 0
    wire: Literal["reference", "roundtrip"] = "reference"
    level: Literal["full", "commits", "summary"] = "full"
    journal: bool = True
    blobs: Literal["all", "none"] = "all"
    checkpoint: NonNegativeInt | None = None

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.workers + self.remote == 0:
            raise ValueError("no worker hosts the trainers; give `--workers 1`, or `--remote 1`")
        if (self.broker_user or self.broker_ca or self.remote) and self.broker in OWN_BROKERS:
            raise ValueError("users, certificates and workers from elsewhere need a broker that others reach; give `--broker HOST:PORT`")
        return self
