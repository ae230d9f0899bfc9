"""Silence: which workers have died without saying so. Lateness is never silence.

A worker is silent when its main loop has sent no heartbeat for `grace`, or when one of its computes
has run longer than max(60 s, 20 x the measured median). Both are wall time, and decide one thing
only: that the process is killed and started again, which no role can see.
"""

from collections import deque
from statistics import median

from flame.core.time import SECOND, in_seconds

LONG_COMPUTE = 60 * SECOND
TIMES_MEDIAN = 20
REMEMBERED = 200
"""Measured computes that the median is taken over."""


class Liveness:
    """Heartbeats and running jobs of all workers. Times in ns."""

    def __init__(self, grace: int) -> None:
        self._grace = grace
        self._beats: dict[str, tuple[int, int]] = {}
        self._computes: deque[int] = deque(maxlen=REMEMBERED)

    def beat(self, worker: str, computing: int, now: int) -> None:
        """A heartbeat arrived; `computing`: how long the worker's running job takes so far."""
        self._beats[worker] = (now, computing)

    def computed(self, took: int) -> None:
        """A job took that long."""
        self._computes.append(took)

    def forget(self, worker: str) -> None:
        """The worker is being started again, or is given up: nothing is expected of it."""
        self._beats.pop(worker, None)

    def silent(self, now: int) -> list[tuple[str, str]]:
        """Workers to be started again, each with the reason."""
        bound = max(LONG_COMPUTE, TIMES_MEDIAN * int(median(self._computes))) if self._computes else LONG_COMPUTE
        found = []
        for worker, (last, computing) in self._beats.items():
            if now - last > self._grace:
                found.append((worker, f"no heartbeat for {in_seconds(now - last):.1f} s"))
            elif computing > bound:
                found.append((worker, f"a compute has run for {in_seconds(computing):.0f} s, over {in_seconds(bound):.0f} s"))
        return found
