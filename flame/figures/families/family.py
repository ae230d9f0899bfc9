"""What the fields of every figure in figs.yaml are, and what a family can do."""

from abc import ABC, abstractmethod

from pydantic import Field

from flame.config.frozen import Frozen
from flame.figures.scene import Picture, Scene

FRACTION = Field(gt=0, le=1)


class Family(Frozen, ABC):
    """One figure. arms: which, in order; None for all. target: instead of the file's. mixed: conditions may differ. caption: begins it."""

    arms: tuple[str, ...] | None = None
    target: float | None = Field(default=None, gt=0, le=1)
    mixed: bool = False
    caption: str = ""

    @property
    def of_arms(self) -> bool:
        """Whether it is drawn from arms, and not from a sweep."""
        return True

    @property
    def needs_target(self) -> bool:
        """Whether nothing can be drawn without a target accuracy."""
        return False

    @property
    def needs_full(self) -> bool:
        """Whether it is drawn from records of telemetry `full`."""
        return False

    @abstractmethod
    def draw(self, scene: Scene) -> Picture:
        """Draw it from what `scene` holds. Raises ConfigError where that isn't enough."""
