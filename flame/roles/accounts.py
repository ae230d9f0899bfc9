"""What the aggregator says of its decisions: records made from ledger rows. Nothing here decides."""

from collections.abc import Sequence

from flame.core.messages import Update
from flame.core.progress import Progress
from flame.learn.params import Vector, finite
from flame.roles.cycle import Upload
from flame.roles.roster import Row
from flame.telemetry.records import Accepted, Contributor


def judged(at: Progress, row: Row, stamp: int, update: Update, *, reason: str, rate: float | None) -> Accepted:
    """The record of an update released at `stamp`. rate: its weight, None when it was refused."""
    return Accepted(
        at, row.id, row.node, rate is not None, reason, row.version, row.data_id, row.iteration,
        at.model_version - row.version, rate, (row.stamp, stamp), update.stamp, update.loss, update.utility,
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
