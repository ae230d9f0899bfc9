"""What is known of a trainer's device before the run."""

from dataclasses import dataclass


@dataclass(slots=True)
class Profile:
    """A device: one unit of work takes `delay_ns` on it (modelled, never measured)."""

    node: str
    delay_ns: int

    def duration(self, size: float = 1.0) -> int:
        """Nanoseconds that a task of `size` units takes here: D x size."""
        return round(self.delay_ns * size)
