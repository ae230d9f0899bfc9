"""Silence: which workers have died without saying so. Lateness is never silence.

A worker is silent when its main loop has sent no heartbeat for `grace`, or when one of its computes
has run longer than max(60 s, 20 x the measured median). Both are wall time, and decide one thing
only: that the process is killed and started again, which no role can see.

A life is expected from its announcement on, whether or not a heartbeat of it was ever heard; one that is
being started has an allowance instead. A heartbeat of an earlier life says nothing of the present one.
"""

from collections import deque
from dataclasses import dataclass
from statistics import median

from flame.core.time import SECOND, in_seconds

LONG_COMPUTE = 60 * SECOND
TIMES_MEDIAN = 20
REMEMBERED = 200
"""Measured computes that the median is taken over."""


@dataclass(slots=True)
class _Life:
    """One incarnation; None while it is being started. heard: when its silence began to count, ns."""

    incarnation: str | None
    heard: int
    computing: int = 0


class Liveness:
    """Heartbeats and running jobs of all workers. Times in ns."""

    def __init__(self, grace: int) -> None:
        self._grace = grace
        self._lives: dict[str, _Life] = {}
        self._computes: deque[int] = deque(maxlen=REMEMBERED)

    def present(self, worker: str, incarnation: str, now: int) -> None:
        """The worker has announced itself: from now on it is expected to be heard."""
        self._lives[worker] = _Life(incarnation, now)

    def starting(self, worker: str, allowance: int, now: int) -> None:
        """The worker is being started again, and may take `allowance` for it."""
        self._lives[worker] = _Life(None, now + allowance)

    def beat(self, worker: str, incarnation: str, computing: int, now: int) -> None:
        """A heartbeat arrived; `computing`: how long the running job takes so far. Of another life than the present one: ignored."""
        life = self._lives.get(worker)
        if life is not None and life.incarnation == incarnation:
            life.heard, life.computing = now, computing

    def excuse(self, now: int) -> None:
        """Nobody could be heard until now, for a reason that isn't theirs: the connection was down."""
        for life in self._lives.values():
            life.heard = max(life.heard, now)

    def computed(self, took: int) -> None:
        """A job took that long."""
        self._computes.append(took)

    def forget(self, worker: str) -> None:
        """The worker is given up: nothing is expected of it."""
        self._lives.pop(worker, None)

    def silent(self, now: int) -> list[tuple[str, str | None, str]]:
        """Workers to be started again: name, the incarnation that is silent (None: being started), reason."""
        bound = max(LONG_COMPUTE, TIMES_MEDIAN * int(median(self._computes))) if self._computes else LONG_COMPUTE
        found: list[tuple[str, str | None, str]] = []
        for worker, life in self._lives.items():
            if now - life.heard > self._grace:
                found.append((worker, life.incarnation, f"no heartbeat for {in_seconds(now - life.heard):.1f} s"))
            elif life.computing > bound:
                ran, most = in_seconds(life.computing), in_seconds(bound)
                found.append((worker, life.incarnation, f"a compute has run for {ran:.0f} s, over {most:.0f} s"))
        return found
