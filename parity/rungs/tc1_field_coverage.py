"""TC1: the fields that a run's own configuration requires are there."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import polars as pl

from flame.policies.select.oort import Scored
from flame.telemetry.columns import level
from flame.telemetry.records import LEVELS
from parity.evidence import Pair, Run, Window
from parity.rung import INV, LOGICAL, Finding, rung
from parity.single import Look, in_each


@dataclass(frozen=True, slots=True)
class Required:
    """A field, in which runs it is required, and on which rows it may not be null."""

    field: str
    when: Callable[[Run], bool]
    rows: pl.Expr | None = None


def _always(run: Run) -> bool:
    return True


def _sim(run: Run) -> bool:
    return run.dir.world.kind == "sim"


def _real(run: Run) -> bool:
    return run.dir.world.kind == "real"


def _gated(run: Run) -> bool:
    return any(rule.type == "variance" for rule in run.condition.commit)


def _scored(run: Run) -> bool:
    return isinstance(run.condition.select, Scored)


def _ended(run: Run) -> bool:
    return run.verdict is not None and run.verdict.verdict != "CRASH"


def _evaluated(run: Run) -> bool:
    """Whether an evaluation must have been released before the last close."""
    rule = run.condition.eval
    if not rule.every:
        return False
    due = run.rounds.filter(pl.col("committed"))["stamp_ns"].to_list()[rule.every - 1 : rule.every]
    last = run.rounds["stamp_ns"].max()
    return bool(due) and isinstance(last, int) and due[0] + rule.seconds * 1e9 < last


def _fields(kind: str, names: str, when: Callable[[Run], bool] = _always, rows: pl.Expr | None = None) -> Iterator[Required]:
    yield from (Required(f"{kind}.{name}", when, rows) for name in names.split())


REQUIRED: tuple[Required, ...] = (
    *_fields("run_meta", "fingerprint init data code seed tier commit_order pacing nodes"),
    *_fields("run_end", "verdict reason", _ended),
    *_fields(
        "agg_round", "cycle round data_id iteration model_version goal concurrency cohort stamp_ns committed reason rate_policy model"
    ),
    *_fields("agg_round", "pool in_flight accepts rejects wall_s"),
    *_fields("agg_round", "variance", _gated, pl.col("pool") >= 2),
    *_fields("agg_round", "threshold", _gated),
    *_fields("agg_round", "grad_norm", rows=pl.col("committed")),
    *_fields("agg_round", "vclock_ns", _sim),
    *_fields("agg_round", "lag_s phases", _real),
    *_fields("agg_eval", "version stamp_ns loss accuracy samples", _evaluated),
    *_fields("selection", "cycle candidates eligible chosen in_flight concurrency goal policy eligible_fp"),
    *_fields("selection", "scores", _scored),
    *_fields("dispatch", "cycle id trainer stamp_ns due_ns delay_ns up_ns payload in_flight"),
    *_fields("accepted", "cycle id trainer accepted version staleness interval_ns due_ns loss utility"),
    *_fields("accepted", "rate", rows=pl.col("accepted")),
    *_fields("task_recv", "id trainer due_ns"),
    *_fields("task_send", "id trainer stamp_ns"),
    *_fields("trainer_round", "id trainer delay_ns overran passes loss utility samples phases"),
    *_fields("comm", "direction payload id message_bytes"),
    *_fields("lateness", "id late_s", _real),
)
"""What a run must have written, given its condition, its world and its level of telemetry."""


def _kind(need: Required) -> str:
    return need.field.partition(".")[0]


@rung(id="TC1", name="field_coverage", stage=0, tier=INV, domain=LOGICAL, reads=sorted({_kind(need) for need in REQUIRED}))
def field_coverage(pair: Pair, window: Window) -> Finding:
    """Every field that this run's own configuration requires is present and non-empty.

    What it checks: for each run, the fields listed in `REQUIRED` that its condition, world and level of
        telemetry call for: a variance on every close of a gated run, a vclock in a sim, a lateness in a
        real run at level `full`, and so on.
    Why: a rung without its data is a SKIP, and a ladder of skips looks calm. Where the configuration
        says that the data must exist, their absence is a failure.
    Reads: all record kinds of the run's level.
    Statistic: number of fields that are absent, or null on a row where they may not be.
    Tolerance: 0.
    Known limits: it knows that a field is there, not that it is right.
    """
    return in_each(pair.runs, coverage, "required fields")


def coverage(run: Run) -> Look:
    """The required fields of `run` that are absent."""
    written = LEVELS.index(run.dir.world.level)
    required = [need for need in REQUIRED if LEVELS.index(level(_kind(need))) <= written and need.when(run)]
    faults = [fault for fault in (_absence(run, need) for need in required) if fault]
    return Look(len(required), faults)


def _absence(run: Run, need: Required) -> str | None:
    kind, _, name = need.field.partition(".")
    frame = run.frame(kind, *{name, *(need.rows.meta.root_names() if need.rows is not None else ())})
    if not frame.height:
        return f"`{need.field}` is required: there is no {kind} record"
    column = (frame if need.rows is None else frame.filter(need.rows))[name]
    absent = column.null_count()
    return f"`{need.field}` is required and absent on {absent} of {column.len()} rows" if absent else None
