"""How a run is carried out. Nothing here may change a decision or a bit of the model (exact tier)."""

from typing import Literal

from pydantic import PositiveInt

from flame.config.condition import Frozen


class World(Frozen):
    """One of the two worlds and its machinery.

    broker: `embedded` (in the launcher's process tree), `mosquitto` (a private one), or HOST:PORT of a running one.
    workers: processes that host the trainers (real). pool: compute processes (sim), 0 computes inline.
    wire: `roundtrip` encodes and decodes every message in sim too. level: how much telemetry.
    blobs: whether journals keep the tensors, without which a replay can't be made.
    """

    kind: Literal["sim", "real"] = "sim"
    broker: str = "embedded"
    workers: PositiveInt = 2
    pool: int = 0
    prefix_cache: bool = True
    wire: Literal["reference", "roundtrip"] = "reference"
    level: Literal["full", "commits", "summary"] = "full"
    journal: bool = True
    blobs: Literal["all", "none"] = "all"
