"""What a command is about to run: conditions, and the worlds that each of them is run in."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from flame.config.condition import Condition
from flame.config.experiments import Resolved
from flame.config.world import World


@dataclass(frozen=True, slots=True)
class Plan:
    """The launch objects themselves: what the pre-flight prints is read from these, and these are run."""

    run_set: str
    resolved: Sequence[Resolved]
    worlds: Sequence[World]
    runs: Path

    @property
    def conditions(self) -> list[Condition]:
        """All of them, baseline by baseline, seed by seed."""
        return [each.condition for each in self.resolved]

    @property
    def baselines(self) -> dict[str, Resolved]:
        """The first condition of each baseline; the others differ from it in their seed only."""
        found: dict[str, Resolved] = {}
        for each in self.resolved:
            found.setdefault(each.condition.baseline, each)
        return found

    @property
    def seeds(self) -> list[int]:
        """Each once."""
        return list(dict.fromkeys(condition.seed for condition in self.conditions))

    @property
    def real(self) -> World | None:
        """The real world, if it is asked for."""
        return next((world for world in self.worlds if world.kind == "real"), None)

    @property
    def sim(self) -> World | None:
        """The simulated world, if it is asked for."""
        return next((world for world in self.worlds if world.kind == "sim"), None)
