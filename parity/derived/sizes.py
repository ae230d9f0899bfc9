"""K and C in force, cycle by cycle, as a run's own records have them: a policy may change both between cycles."""

import polars as pl

from parity.evidence import Run
from parity.single import Look

KINDS = ("selection", "agg_round")
"""Records that say K and C: the open cycle's choices, and its close."""


def sizes_of(run: Run) -> pl.DataFrame:
    """What was said of K and C, by cycle: goal, concurrency, kind; a row for each thing that was said."""
    said = [run.frame(kind, "cycle", "goal", "concurrency").select("cycle", "goal", "concurrency", kind=pl.lit(kind)) for kind in KINDS]
    return pl.concat(said).drop_nulls().unique(maintain_order=True).sort("cycle", maintain_order=True)


def over_concurrency(run: Run) -> list[str]:
    """Dispatches that held more slots than the C of their cycle; of a cycle that says none, than any C could be."""
    in_force = sizes_of(run).unique("cycle", keep="first").select("cycle", limit="concurrency")
    most = max(sizes.concurrency for sizes in run.condition.possible_sizes)
    rows = (
        run.frame("dispatch", "_seq", "id", "cycle", "in_flight")
        .join(in_force, on="cycle", how="left")
        .with_columns(pl.col("limit").fill_null(most))
    )
    over = rows.filter(pl.col("in_flight") > pl.col("limit")).sort("_seq").select("id", "cycle", "in_flight", "limit")
    return [f"id {key} (cycle {cycle}): {count} in flight, C = {limit}" for key, cycle, count, limit in over.iter_rows()]


def sizes_hold(run: Run) -> Look:
    """A cycle has one K and one C, from its opening to its close, and its condition allows them."""
    said, allowed = sizes_of(run), set(run.condition.possible_sizes)
    faults, of_cycle = [], dict[int, tuple[int, int]]()
    for cycle, goal, concurrency, kind in said.iter_rows():
        first = of_cycle.setdefault(cycle, (goal, concurrency))
        if first != (goal, concurrency):
            faults.append(f"cycle {cycle} has K {first[0]}, C {first[1]}, and K {goal}, C {concurrency} in its {kind}")
        if (goal, concurrency) not in allowed:
            faults.append(f"cycle {cycle} has K {goal}, C {concurrency}, which its `sizes` don't allow")
    return Look(said.height, faults)
