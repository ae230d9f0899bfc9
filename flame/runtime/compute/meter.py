"""What a process takes of its machine: CPU and memory, as min, mean and max of all samples since the last report.

A single sample, taken while the process happens to wait, says nothing. Absent is absent: a report over
no samples isn't made.
"""

import platform

import psutil

from flame.telemetry.records import Resource, Spread


class Meter:
    """Samples this process."""

    def __init__(self) -> None:
        self._process = psutil.Process()
        self._process.cpu_percent()
        self._cpu: list[float] = []
        self._rss: list[float] = []

    def sample(self) -> None:
        """Look once: CPU in percent of one core since the last look, resident bytes now."""
        self._cpu.append(self._process.cpu_percent())
        self._rss.append(float(self._process.memory_info().rss))

    def report(self) -> Resource | None:
        """The spread of the samples since the last report; None when there are none."""
        if not self._rss:
            return None
        record = Resource(platform.node(), _spread(self._cpu), _spread(self._rss))
        self._cpu, self._rss = [], []
        return record


def _spread(samples: list[float]) -> Spread:
    return Spread(min(samples), sum(samples) / len(samples), max(samples), len(samples))
