"""C3: a slot is given up after exactly as long as the condition says."""

from collections.abc import Iterator

import polars as pl

from flame.core.time import in_seconds
from parity.evidence import Pair, Run, Window
from parity.rung import INV, LOGICAL, Finding, rung, skipped
from parity.single import Look, in_each


@rung(
    id="C3",
    name="abandon_timeout",
    stage=2,
    tier=INV,
    domain=LOGICAL,
    needs=["dispatch.stamp_ns", "accepted.interval_ns"],
    reads=["abandoned"],
    upstream=["A3"],
)
def abandon_timeout(pair: Pair, window: Window) -> Finding:
    """A slot is given up at its dispatch + `abandon_s`, in stamps, and every slot that is held that long is.

    What it checks: in each run, the age and the stamp of each abandon; and of each released update that was out for
        `abandon_s` or longer, that its slot had been given up.
    Why: a timeout of 90 s that ran on the wall clock while the virtual one crawled made 60 % of all dispatches overlap in
        the reference system. A timer that decides something is stamped.
    Reads: dispatch, abandoned, accepted.interval_ns; `availability.abandon_s` of the condition, over `time_scale`.
    Statistic: number of slots that were given up at another time, or not.
    Tolerance: 0.
    Known limits: rows that are open when the run ends are left out. SKIP where the condition gives up nothing.
    """
    if pair.condition.availability.abandon_ns is None:
        return skipped("the condition gives up no slot (`availability.abandon_s` isn't set)")
    return in_each(pair.runs, untimely, "assigns")


def untimely(run: Run) -> Look:
    """The slots of `run` that were given up too early, too late, or not at all."""
    given = run.frame("abandoned")
    return Look(run.frame("dispatch", "id").height, [*_at_another_time(run), *_never(run)], f"gave up {given.height}")


def _at_another_time(run: Run) -> Iterator[str]:
    after = run.condition.availability.abandon_ns or 0
    stamps = dict(run.frame("dispatch", "id", "stamp_ns").iter_rows())
    for key, trainer, stamp, age in run.frame("abandoned").sort("_seq").select("id", "trainer", "stamp_ns", "age_ns").iter_rows():
        if key not in stamps:
            yield f"id {key} of `{trainer}` was given up and never dispatched"
        elif age != after or stamp != stamps[key] + after:
            yield (
                f"id {key} of `{trainer}` was given up after {in_seconds(stamp - stamps[key]):.6f} s (it says {in_seconds(age):.6f}),"
                f" not {in_seconds(after):.6f}"
            )


def _never(run: Run) -> Iterator[str]:
    after, given = run.condition.availability.abandon_ns or 0, set(run.frame("abandoned")["id"].to_list())
    released = run.frame("accepted", "_seq", "id", "trainer", "interval_ns").sort("_seq")
    long = pl.col("interval_ns").list.get(1) - pl.col("interval_ns").list.get(0) >= after
    for key, trainer, (begun, ended) in released.filter(long).select("id", "trainer", "interval_ns").iter_rows():
        if key not in given:
            yield f"id {key} of `{trainer}` was out for {in_seconds(ended - begun):.6f} s and its slot wasn't given up"
