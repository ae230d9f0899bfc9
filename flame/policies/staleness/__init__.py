"""Which updates are taken at all, judged at their release (algorithms.md, section 4)."""

from typing import Literal

from flame.core.progress import Progress

Staleness = Literal["exact", "same_bin", "accept"]


def refusal(policy: Staleness, version: int, iteration: int, progress: Progress) -> str | None:
    """Why an update made at (version, iteration) is refused now; None: it is accepted.

    exact: version and iteration are the open cycle's. same_bin: the version is. accept: any.
    """
    if policy != "accept" and version != progress.model_version:
        return f"version {version} is not the current {progress.model_version}"
    if policy == "exact" and iteration != progress.iteration:
        return f"iteration {iteration} is not the current {progress.iteration}"
    return None
