"""What a server step may look at, beside theta, G and its own state."""

from dataclasses import dataclass

from flame.core.progress import Progress


@dataclass(frozen=True, slots=True)
class StepView:
    """progress: before this commit. uploads: n of the pool, whose mean is G. worth: w, of each upload, in random directions.

    That is p E[cos^2] of an upload with the gradient: P for a mean of P probes, p for a true gradient.
    """

    progress: Progress
    uploads: int = 1
    worth: float = 1.0
