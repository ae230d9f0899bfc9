"""What a rate may look at."""

from dataclasses import dataclass


@dataclass(slots=True)
class RateView:
    """staleness: commits since the update's version. utility: Oort's U as the trainer reported it."""

    staleness: int
    utility: float
