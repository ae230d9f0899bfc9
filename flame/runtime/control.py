"""What a launcher and its processes tell each other, over a pipe on the same host.

The pipe is the life line too: a child whose pipe ends has lost its launcher, and exits.
"""

from dataclasses import dataclass


@dataclass(slots=True)
class AskStop:
    """Launcher to aggregator: end the run."""

    why: str
    verdict: str


@dataclass(slots=True)
class WorkerLost:
    """Launcher to aggregator: that worker's respawns are spent."""

    worker: str
    nodes: list[str]
    why: str


@dataclass(slots=True)
class WorkerRestarted:
    """Launcher to aggregator: that worker has died and is being started again."""

    worker: str
    why: str


@dataclass(slots=True)
class Finish:
    """Launcher to aggregator: everybody else is gone; clear the run's topics and exit."""


@dataclass(slots=True)
class Orphaned:
    """The launcher is gone."""


@dataclass(slots=True)
class Founded:
    """First child to launcher: the run's process group exists, others can join it."""


@dataclass(slots=True)
class Ready:
    """Child to launcher: it is connected (worker), or everybody is present (aggregator)."""

    name: str


@dataclass(slots=True)
class Closed:
    """Aggregator to launcher: a cycle has closed."""

    now: int
    cycle: int
    round: int
    data_id: int
    iteration: int
    version: int
    in_flight: int


@dataclass(slots=True)
class Scored:
    """Aggregator to launcher: an evaluation was released."""

    accuracy: float
    loss: float


@dataclass(slots=True)
class Silent:
    """Aggregator to launcher: that worker is to be started again. incarnation: the life that is silent, None for one being started."""

    worker: str
    incarnation: str | None
    why: str


@dataclass(slots=True)
class Stalled:
    """Aggregator to launcher: no cycle has closed for so long, longer than what is open explains. waits: for whom, the first lines."""

    seconds: float
    waits: str


@dataclass(slots=True)
class Alive:
    """Aggregator to launcher: its main loop is running."""


@dataclass(slots=True)
class Ended:
    """Aggregator to launcher: how the run ended."""

    verdict: str
    reason: str
    now: int
    steps: int


@dataclass(slots=True)
class Crashed:
    """Child to launcher: it can't go on."""

    name: str
    error: str


Order = AskStop | WorkerLost | WorkerRestarted | Finish | Orphaned
Report = Founded | Ready | Closed | Scored | Silent | Stalled | Alive | Ended | Crashed
