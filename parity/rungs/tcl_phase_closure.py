"""Tcl: measured phases add up to the time that passed."""

from collections.abc import Iterator

import polars as pl

from parity.derived.phases import with_phases
from parity.evidence import Pair, Run, Window
from parity.measures.statistics import ALPHA, quantile_share
from parity.rung import INV, PHYSICAL, Finding, rung
from parity.single import Look, in_each

RELATIVE, ABSOLUTE_S = 0.02, 0.005
SHARE = 0.01
TRAINER, AGGREGATOR = ("queue", "to_device", "compute", "to_host", "hold", "encode"), ("wait", "work")
OPTIONAL = ("to_device", "to_host", "encode")
"""Phases that a job need not have: only torch moves values."""


@rung(
    id="Tcl",
    name="phase_closure",
    stage=4,
    tier=INV,
    domain=PHYSICAL,
    needs=["real:trainer_round.phases", "real:agg_round.phases", "real:agg_round.wall_s", "real:task_recv.id", "real:task_send.id"],
)
def phase_closure(pair: Pair, window: Window) -> Finding:
    """In the real run, a trainer's phases add up to its wall between receipt and answer, the aggregator's to that between closes.

    What it checks: queue + to_device + compute + to_host + hold + encode of each job, against the wall from its task_recv to its
        task_send; wait + work of each cycle, against the wall since the close before. Each phase is 0 or more.
    Why: control work was counted inside the wait for data, and an idle time of 0 had never been measured. Phases that
        don't close are not a ledger.
    Reads: trainer_round.phases, agg_round.phases, agg_round.wall_s, and the clocks of task_recv and task_send.
    Statistic: number of sums that don't close, and the binomial chance of so many; the sum of all of them; phases that are
        missing or negative.
    Tolerance: 2 %, or 5 ms where that is more; 1 % of the sums may be farther off, since a process may lose its core between
        two readings of a clock, and all of them together may not.
    Known limits: the sim doesn't wait, and has no phases that could close. Decoding an assign comes before its receipt.
        The first cycle is left out: its wall begins before `ready`.
    """
    return in_each([pair.real], closure, "sums of phases")


def closure(run: Run) -> Look:
    """The sums of phases of `run` that don't close."""
    sums = [("job", TRAINER, _jobs(run)), ("cycle", AGGREGATOR, _cycles(run))]
    faults = [fault for what, names, frame in sums for fault in _faults(what, names, frame)]
    return Look(sum(frame.height for _, _, frame in sums), faults)


def _jobs(run: Run) -> pl.DataFrame:
    """Jobs that were received and answered in one life of their trainer."""
    keys = ["id", "trainer", "_incarnation"]
    received, sent = (
        run.frame(kind, *keys, "_t_ns").rename({"_t_ns": "at"}).unique(keys, keep="first") for kind in ("task_recv", "task_send")
    )
    walls = received.join(sent, on=keys, suffix="_sent").select(*keys, wall=(pl.col("at_sent") - pl.col("at")) / 1e9)
    told = with_phases(run, *keys, "phases").unique(keys, keep="first", maintain_order=True).filter(pl.col("phases").is_not_null())
    return _closed(told.join(walls, on=keys, maintain_order="left").rename({"id": "number"}), TRAINER)


def _cycles(run: Run) -> pl.DataFrame:
    wall = pl.col("wall_s") - pl.col("wall_s").shift(1)
    told = {name: pl.col("phases").str.json_path_match(f"$.{name}").cast(pl.Float64) for name in AGGREGATOR}
    return _closed(run.rounds.with_columns(number="cycle", wall=wall, **told).drop_nulls(["wall", "phases"]), AGGREGATOR)


def _closed(frame: pl.DataFrame, names: tuple[str, ...]) -> pl.DataFrame:
    """number, wall, the phases, their total, how far it is off, and how far it may be."""
    phases = [pl.col(name).fill_null(0.0) if name in OPTIONAL else pl.col(name) for name in names]
    sums = frame.select("number", "wall", *phases).with_columns(total=pl.sum_horizontal(names))
    allowed = pl.max_horizontal(pl.col("wall").abs() * RELATIVE, pl.lit(ABSOLUTE_S))
    return sums.with_columns(off=(pl.col("total") - pl.col("wall")).abs(), allowed=allowed)


def _faults(what: str, names: tuple[str, ...], frame: pl.DataFrame) -> Iterator[str]:
    impossible = pl.any_horizontal(pl.col(names).is_null() | (pl.col(names) < 0))
    yield from (_told(what, names, row) for row in frame.filter(impossible).iter_rows(named=True))
    total, wall = (float(frame[column].sum()) for column in ("total", "wall"))
    if abs(total - wall) > max(RELATIVE * wall, ABSOLUTE_S):
        yield f"all {what}s: phases of {total:.3f} s in {wall:.3f} s of wall"
    beyond = frame.filter(pl.col("off") > pl.col("allowed"))
    if beyond.height and quantile_share(frame["off"] - frame["allowed"], 0.0, SHARE)[1] <= ALPHA:
        yield from (_told(what, names, row) for row in beyond.iter_rows(named=True))


def _told(what: str, names: tuple[str, ...], row: dict[str, float | None]) -> str:
    parts = " + ".join(f"{name} {'-' if row[name] is None else f'{row[name]:.3f}'}" for name in names)
    return f"{what} {row['number']}: {parts} = {row['total']:.3f} s in {row['wall']:.3f} s of wall"
