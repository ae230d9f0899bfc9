"""One thing that stands in the way of a run, and what to do about it."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Issue:
    """what: with field and value. remedy: what to type. blocking: it can't work, not even with --force."""

    what: str
    remedy: str
    blocking: bool


def refused(issues: Iterable[Issue], force: bool) -> bool:
    """Whether they keep the runs from starting."""
    return any(issue.blocking or not force for issue in issues)


def cannot(what: str, remedy: str) -> Issue:
    """It can't work."""
    return Issue(what, remedy, True)


def unwise(what: str, remedy: str) -> Issue:
    """It can work, and shouldn't be done by mistake."""
    return Issue(what, remedy, False)
