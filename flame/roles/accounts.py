"""What the aggregator says of its decisions: faults by name, records made from ledger rows."""

from collections.abc import Sequence

from flame.core.messages import Update
from flame.core.progress import Progress
from flame.learn.params import Vector, finite
from flame.policies import staleness
from flame.policies.rate import Weight
from flame.policies.staleness import Unit
from flame.roles.cycle import Upload
from flame.roles.roster import Row
from flame.telemetry.records import Accepted, Contributor


def age(unit: Unit, at: Progress, row: Row, stamp: int) -> float:
    """How old the answer to `row` is when it is released at `stamp`."""
    return staleness.age(unit, at, stamp, version=row.version, cycle=row.cycle, stamp=row.stamp)


def judged(at: Progress, row: Row, stamp: int, update: Update, *, unit: Unit, reason: str, weight: Weight | None) -> Accepted:
    """The record of an update released at `stamp`. weight: None when it was refused."""
    rate, parts, gated = (weight.value, weight.parts or None, weight.gated) if weight else (None, None, False)
    return Accepted(
        at, row.id, row.node, weight is not None, reason, row.version, row.data_id, row.iteration,
        age(unit, at, row, stamp), rate, (row.stamp, stamp), update.stamp, update.loss, update.utility, parts, gated,
    )  # fmt: skip


def contributors(cohort: Sequence[Upload]) -> list[Contributor]:
    """A closed cycle's members, in commit order."""
    return [Contributor(upload.row.node, upload.row.id, upload.row.stamp, upload.stamp, upload.staleness, upload.rate) for upload in cohort]


def non_finite(moved: Vector, aggregate: Vector, cohort: Sequence[Upload], at: Progress) -> str | None:
    """Which of G and theta isn't finite, and after whose uploads; None when both are."""
    who = ", ".join(upload.row.node for upload in cohort)
    for name, values in (("G", aggregate), ("theta", moved)):
        if not finite(values):
            return f"{name} is not finite after the cohort {who} ({at})"
    return None
