"""What is computed over columns is what a naive loop over rows makes of the same small tables."""

from typing import Any

import numpy as np
import orjson
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from flame.core.trace import Trace
from parity.derived import pools as columnar_pools
from parity.derived.phases import MEASURED, phases_of
from parity.derived.presence import NO_TIME, available_at, next_available_at, traces_of
from parity.measures.compare import equal
from parity.measures.statistics import quantile_share
from parity.measures.tables import equal_rows
from parity.rungs.a6_trace_fidelity import against_trace
from parity.rungs.k6_stamps import wrong_stamps
from parity.rungs.l1_cohort_sequence import ASPECTS, parted_aspects, suspects
from parity.rungs.r1_residence import overlaps
from parity.rungs.s1_selection import jaccard
from parity.rungs.u4_agg_goal_cycles import conservation
from tests.parity import naive
from tests.parity.fixtures import condition, fidelity
from tests.parity.naive import Row, Table
from tests.parity.tables import MADE, NODES, Tabled, records

MANY = settings(max_examples=60, deadline=None)
States = st.sampled_from(["AVL_TRAIN", "AVL_EVAL", "UN_AVL"])
traces = st.builds(Trace.of, st.lists(st.tuples(st.integers(0, 8), States), max_size=5), st.none() | st.integers(9, 12))


@MANY
@given(records())
def test_residence(table: Table) -> None:
    assert overlaps(Tabled(table)).faults == naive.overlaps(table)


@MANY
@given(records())
def test_conservation(table: Table) -> None:
    look = conservation(Tabled(table))
    assert look.faults == naive.conservation(table)
    assert look.n == len(table["agg_round"]) + len({row["id"] for row in table["dispatch"]})


@MANY
@given(records(), st.booleans())
def test_stamps(table: Table, exact: bool) -> None:
    assert wrong_stamps(Tabled(table, None if exact else fidelity())).faults == naive.wrong_stamps(table, exact)


@MANY
@given(records())
def test_pools(table: Table) -> None:
    told = columnar_pools._pools(Tabled(table))
    names = [{node for node, free in zip(told.nodes, row, strict=True) if free} for row in told.free.tolist()]
    assert list(zip(names, told.told["fingerprint"], strict=True)) == naive.pools(table, list(NODES))
    assert told.told["size"].to_list() == [len(free) for free in names]


@MANY
@given(records(), st.dictionaries(st.sampled_from(NODES[:2]), traces))
def test_traces(table: Table, known: dict[str, Trace]) -> None:
    run = Tabled(table)
    run._derived[traces_of] = known
    assert against_trace(run).faults == naive.against_trace(table, known)


@MANY
@given(traces, st.lists(st.integers(0, 40), min_size=1))
def test_a_trace_answers_many_stamps_at_once(trace: Trace, stamps: list[int]) -> None:
    at = np.array(stamps)
    assert available_at(trace, at).tolist() == [trace.available(stamp) for stamp in stamps]
    back = [None if stamp == NO_TIME else stamp for stamp in next_available_at(trace, at).tolist()]
    assert back == [trace.next_available(stamp) for stamp in stamps]


@st.composite
def closes(draw: st.DrawFn) -> tuple[list[Row], list[Row]]:
    """The closes of two runs, which are equal but for some of them."""
    made = st.lists(MADE["agg_round"], max_size=4)
    extra = {
        "round": 0,
        "data_id": 0,
        "iteration": 0,
        "model_version": 0,
        "concurrency": 3,
        "committed": True,
        "reason": "goal",
        "state": "s",
    }
    value = st.fixed_dictionaries({"variance": st.none() | st.just(0.5), "model": st.sampled_from("ab")})
    one = [row | extra | {"cycle": cycle} | draw(value) for cycle, row in enumerate(draw(made))]
    other = draw(st.lists(st.sampled_from(["same", "same", "other", "none"]), min_size=len(one), max_size=len(one)))
    two = [
        row if how == "same" else row | draw(MADE["agg_round"]) | draw(value) for how, row in zip(other, one, strict=True) if how != "none"
    ]
    return one, two


@MANY
@given(closes())
def test_cycles_that_part(both: tuple[list[Row], list[Row]]) -> None:
    aspects, cycles = list(ASPECTS), len(both[0])
    real, sim = (Tabled({"agg_round": rows}).rounds for rows in both)
    columnar = {cycle: found for cycle, one, two in suspects(real, sim, cycles) if (found := parted_aspects(one, two, aspects))}
    rows = [{row["cycle"]: row for row in side} for side in both]
    plain = {cycle: parted_aspects(rows[0].get(cycle), rows[1].get(cycle), aspects) for cycle in range(cycles)}
    assert columnar == {cycle: found for cycle, found in plain.items() if found}


@MANY
@given(st.lists(st.tuples(st.frozensets(st.sampled_from("abc")), st.frozensets(st.sampled_from("abc"))), min_size=1))
def test_overlaps_of_choices(both: list[tuple[frozenset[str], frozenset[str]]]) -> None:
    real, sim = (pl.Series([sorted(choice[side]) for choice in both], dtype=pl.List(pl.String)) for side in (0, 1))
    naively = [len(one & two) / len(one | two) if one | two else 1.0 for one, two in both]
    assert jaccard(real, sim).to_list() == naively


values = {
    "int": st.integers(0, 2), "float": st.none() | st.sampled_from([0.0, 0.5, 2.0]), "name": st.sampled_from("ab"),
    "list": st.lists(st.sampled_from(["t1", "t2"]), max_size=2),
}  # fmt: skip
KINDS = {"int": pl.Int64(), "float": pl.Float64(), "name": pl.String(), "list": pl.List(pl.String())}


@MANY
@given(st.data(), st.lists(st.sampled_from(sorted(values)), min_size=1, max_size=3, unique=True))
def test_equality_of_tables(data: st.DataObject, columns: list[str]) -> None:
    row = st.fixed_dictionaries({"key": st.integers(0, 9)} | {name: values[name] for name in columns})
    sides = [data.draw(st.lists(row, max_size=9)) for _ in range(2)]
    frames = [pl.DataFrame(side, schema={"key": pl.Int64()} | {name: KINDS[name] for name in columns}) for side in sides]
    one, two = (
        {f"id {row['key']}": row[columns[0]] if len(columns) == 1 else {name: row[name] for name in columns} for row in side}
        for side in sides
    )
    found, plain = equal_rows("updates", "id {key}", *frames), equal("updates", one, two)
    assert found == plain
    if plain.exhibit is not None:
        assert [list(getattr(found.exhibit, name)) for name in ("places", "real", "sim", "parted")] == [
            list(getattr(plain.exhibit, name)) for name in ("places", "real", "sim", "parted")
        ]


@MANY
@given(st.lists(st.none() | st.dictionaries(st.sampled_from([*MEASURED, "other"]), st.integers(0, 2) | st.floats(0, 9))))
def test_phases(told: list[dict[str, Any] | None]) -> None:
    run = Tabled({"trainer_round": [{"phases": None if each is None else orjson.dumps(each).decode()} for each in told]})
    assert run.derived(phases_of).to_dicts() == [{name: (each or {}).get(name) for name in MEASURED} for each in told]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40), st.floats(0, 1), st.sampled_from([0.01, 0.25]))
def test_the_binomial_tail(sample: list[float], limit: float, share: float) -> None:
    over, chance = quantile_share(sample, limit, share)
    assert over == sum(value > limit for value in sample)
    assert chance == pytest.approx(float(stats.binom.sf(over - 1, len(sample), share)), rel=1e-9, abs=1e-300)


def test_a_table_in_which_much_is_wrong_has_faults() -> None:
    broken = {
        "dispatch": [{"_seq": 0, "cycle": 0, "id": 1, "trainer": "t0", "stamp_ns": 0, "delay_ns": 1, "due_ns": 2, "up_ns": 0}] * 2,
        "agg_round": [{"_seq": 2, "cycle": 0, "cohort": [], "goal": 1, "stamp_ns": 5}],
    }
    run = Tabled(broken, condition())
    assert all(look(run).faults for look in (overlaps, conservation, wrong_stamps))
