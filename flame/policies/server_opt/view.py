"""What a server step may look at, beside theta, G and its own state."""

from dataclasses import dataclass

from flame.core.progress import Progress


@dataclass(frozen=True, slots=True)
class StepView:
    """progress: before this commit. uploads: n of the pool, whose mean is G. probes: P, directions that went into each upload.

    An upload that is a true gradient saw all p of them.
    """

    progress: Progress
    uploads: int = 1
    probes: int = 1
