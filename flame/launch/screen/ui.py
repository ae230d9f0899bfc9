"""Who is told how a run goes."""

from typing import Protocol


class Ui(Protocol):
    """The person's side of a run; `flame.launch.screen.progress` has one for terminals."""

    def started(self, name: str, world: str) -> None:
        """A run begins."""
        ...

    def closed(
        self, now_ns: int, wall_s: float, cycle: int, round: int, data_id: int, iteration: int, version: int, in_flight: int
    ) -> None:
        """A cycle has closed."""
        ...

    def scored(self, accuracy: float, loss: float) -> None:
        """An evaluation was released."""
        ...

    def noted(self, text: str) -> None:
        """Something a person may want to know: a respawn, a reconnect."""
        ...

    def ended(self, verdict: str, reason: str) -> None:
        """The run is over."""
        ...


class Quiet:
    """Says nothing."""

    def started(self, name: str, world: str) -> None:
        """Nothing."""

    def closed(
        self, now_ns: int, wall_s: float, cycle: int, round: int, data_id: int, iteration: int, version: int, in_flight: int
    ) -> None:
        """Nothing."""

    def scored(self, accuracy: float, loss: float) -> None:
        """Nothing."""

    def noted(self, text: str) -> None:
        """Nothing."""

    def ended(self, verdict: str, reason: str) -> None:
        """Nothing."""
