"""Runs that are nothing but tables: small random ones, for computations that are asked of columns and of plain rows."""

from typing import Any

import polars as pl
from hypothesis import strategies as st

from flame.config import Condition
from flame.telemetry.columns import schema
from parity.evidence import Run
from tests.parity.fixtures import condition
from tests.parity.naive import Row, Table

NODES = ("t0", "t1", "t2")

ids = st.integers(1, 5)
nodes = st.sampled_from(NODES)
stamps = st.integers(0, 4)


class Tabled(Run):
    """A run whose records are given. Columns that a row doesn't have are null."""

    def __init__(self, table: Table, of: Condition | None = None) -> None:
        self.side, self._derived = "real", {}
        self._condition = of or condition(trainers=len(NODES), goal=2, concurrency=3)
        self._table, self._frames = table, dict[str, pl.DataFrame]()

    @property
    def condition(self) -> Condition:
        """As given."""
        return self._condition

    def frame(self, kind: str, *names: str) -> pl.DataFrame:
        """Of the table."""
        if kind not in self._frames:
            self._frames[kind] = _frame(kind, self._table.get(kind, []))
        return self._frames[kind].select(names) if names else self._frames[kind]


def _frame(kind: str, rows: list[Row]) -> pl.DataFrame:
    known = schema(kind)
    return pl.DataFrame([{name: row.get(name) for name in known} for row in rows], schema=known, orient="row")


@st.composite
def records(draw: st.DrawFn) -> Table:
    """The records of one run, of which hardly anything needs to be right; `_seq` is the turn in which they were written."""
    kinds = draw(st.lists(st.sampled_from(sorted(MADE)), max_size=14))
    table: Table = {kind: [] for kind in MADE}
    for seq, kind in enumerate(kinds):
        cycle = len(table["agg_round"])
        table[kind].append({"_seq": seq, "cycle": cycle, "_t_ns": seq, "_stamp_ns": seq} | draw(MADE[kind]))
    for kind in ("dispatch", "accepted", "task_send"):
        table[kind] = draw(st.permutations(table[kind]))
    return table


def _assign(row: Row) -> Row:
    return row | {"due_ns": row["stamp_ns"] + row["delay_ns"] + row["due_ns"]}


def _off() -> st.SearchStrategy[int]:
    """Mostly nothing."""
    return st.sampled_from([0, 0, 0, 1])


member = st.fixed_dictionaries(
    {"trainer": nodes, "id": ids, "dispatched_ns": stamps, "stamp_ns": stamps, "staleness": st.just(0.0), "rate": st.just(1.0)}
)
MADE: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "dispatch": st.fixed_dictionaries(
        {"id": ids, "trainer": nodes, "stamp_ns": stamps, "delay_ns": st.integers(1, 2), "due_ns": _off(), "up_ns": st.integers(0, 1)}
    ).map(_assign),
    "accepted": st.fixed_dictionaries(
        {"id": ids, "trainer": nodes, "accepted": st.booleans(), "interval_ns": st.tuples(stamps, stamps).map(list), "due_ns": stamps}
    ),
    "agg_round": st.fixed_dictionaries({"cohort": st.lists(member, max_size=3), "goal": st.integers(1, 3), "stamp_ns": stamps}),
    "intrusion": st.fixed_dictionaries({"what": st.just("lost"), "voided": st.lists(ids, max_size=2)}),
    "peer": st.fixed_dictionaries({"node": nodes, "up": st.booleans(), "planned": st.booleans()}),
    "selection": st.fixed_dictionaries({"chosen": st.lists(nodes, max_size=2), "eligible_fp": st.just("0")}),
    "withheld": st.fixed_dictionaries({"id": ids, "done_ns": stamps, "due_ns": stamps}),
    "task_send": st.fixed_dictionaries({"id": ids, "trainer": nodes, "stamp_ns": stamps}),
}
"""Kind -> records of it."""
