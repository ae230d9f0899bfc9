"""What trainers' time went into, in stamps, from 0 to the run's end.

- computing: the modelled work D of its assigns, between their legs. It counts though a trace says away: the model lets a
  phone that left finish its batch, and withholds the answer.
- away: it can't be used (its trace, or before it joins and after it leaves), and it isn't computing.
- waiting: the rest. It could be used, and has no work, or its slot is held until the cycle closes.

The three shares of a trainer add up to 1.
"""

from collections.abc import Iterator

import polars as pl

from flame.analysis.learned import Learned
from flame.analysis.presence import Stretch, available, clipped, common, length

SHARES = ("computing", "waiting", "away")
SCHEMA = {"trainer": pl.String(), "assigns": pl.Int64()} | {name: pl.Float64() for name in SHARES}


def utilisation(learned: Learned) -> pl.DataFrame:
    """A row a trainer: how many assigns it had, and the shares of its time. Needs telemetry `full`."""
    end, condition = learned.end, learned.run.condition
    work = _work(learned)
    rows = [
        (node, len(work.get(node, ())), *_shares(work.get(node, []), there, end))
        for node, there in available(condition, end).items() if end
    ]  # fmt: skip
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def _shares(work: list[Stretch], there: list[Stretch], end: int) -> Iterator[float]:
    computing = list(clipped(work, 0, end))
    busy, present, both = length(computing), length(there), common(computing, there)
    for spent in (busy, present - both, end - present - (busy - both)):
        yield spent / end


def _work(learned: Learned) -> dict[str, list[Stretch]]:
    """Trainer -> when it computed: D before the leg up of each assign; of a job that didn't finish D is that of another."""
    jobs = learned.run.telemetry.frame("trainer_round").select("id", "trainer", modelled="delay_ns").unique("id")
    usual = jobs.group_by("trainer").agg(usual=pl.col("modelled").max())
    assigns = learned.run.telemetry.frame("dispatch").join(jobs.drop("trainer"), on="id", how="left").join(usual, on="trainer", how="left")
    done = pl.col("stamp_ns") + pl.col("delay_ns") - pl.col("up_ns")
    taken = pl.coalesce("modelled", "usual", pl.col("delay_ns") - pl.col("up_ns"))
    found: dict[str, list[Stretch]] = {}
    for trainer, begin, end in assigns.select("trainer", begin=done - taken, end=done).iter_rows():
        found.setdefault(trainer, []).append((begin, end))
    return found


def overall(table: pl.DataFrame) -> dict[str, float]:
    """The mean share of each kind over trainers; empty where there is no trainer."""
    return {name: float(table[name].mean()) for name in SHARES} if table.height else {}  # type: ignore[arg-type]
