"""Which updates are taken at all, judged at their release, and how old they are (algorithms.md, section 4).

The age s, which rates see and telemetry reports, counts commits by default. Inside a bin the model
version stands still, and so does that s, however many cycles the bin takes; two other units don't:

    version   commits since the update's model version
    cycle     closed cycles since its dispatch
    stamp     seconds of stamp since its dispatch; a fresh update has its own duration, not 0

The rules below judge by version and iteration, whatever the unit.
"""

from typing import Literal

from flame.core.progress import Progress
from flame.core.time import in_seconds

Staleness = Literal["exact", "same_bin", "accept"]
Unit = Literal["version", "cycle", "stamp"]


def age(unit: Unit, progress: Progress, now: int, *, version: int, cycle: int, stamp: int) -> float:
    """s, at `progress` and `now` (ns), of an update that was asked for at (version, cycle, stamp in ns)."""
    if unit == "stamp":
        return in_seconds(now - stamp)
    return progress.cycle - cycle if unit == "cycle" else progress.model_version - version


def refusal(policy: Staleness, version: int, iteration: int, progress: Progress) -> str | None:
    """Why an update made at (version, iteration) is refused now; None: it is accepted.

    exact: version and iteration are the open cycle's. same_bin: the version is. accept: any.
    """
    if policy != "accept" and version != progress.model_version:
        return f"version {version} is not the current {progress.model_version}"
    if policy == "exact" and iteration != progress.iteration:
        return f"iteration {iteration} is not the current {progress.iteration}"
    return None
