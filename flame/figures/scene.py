"""What a family is given to draw from: the arms of its figure, and how the person wants them shown."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from matplotlib.figure import Figure

from flame.analysis.learned import Learned
from flame.config.experiments import Experiments
from flame.figures.looks import Look

CutoffMode = Literal["none", "peak_acc", "last_improvement"]


@dataclass(frozen=True, slots=True)
class Shown:
    """One arm: runs of one condition, a seed each, under one name."""

    key: str
    name: str
    look: Look
    runs: Sequence[Learned]

    @property
    def label(self) -> str:
        """Its name, with how many seeds."""
        return f"{self.name} (n={len(self.runs)})"


@dataclass(frozen=True, slots=True)
class Style:
    """smooth: evaluations of a running mean, 0 for none. cutoff: where curves end. blind: the own name isn't told."""

    smooth: int = 0
    cutoff: CutoffMode = "none"
    blind: bool = False


@dataclass(frozen=True, slots=True)
class Scene:
    """target: an accuracy. registry, folder: of sweeps."""

    arms: Sequence[Shown]
    target: float | None = None
    style: Style = field(default_factory=Style)
    registry: Experiments | None = None
    folder: Path | None = None


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawn figure and what its caption has to say."""

    figure: Figure
    caption: str


def seeds_told(arms: Sequence[Shown]) -> str:
    """`n = 3 seeds`, or how many each has."""
    counts = {len(arm.runs) for arm in arms}
    if len(counts) == 1:
        n = counts.pop()
        return f"n = {n} seed{'s' if n > 1 else ''}"
    return "seeds: " + ", ".join(f"{arm.name} n = {len(arm.runs)}" for arm in arms)
