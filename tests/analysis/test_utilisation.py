"""Where trainers' time went, against a look at each of many instants; stretches against sets of instants."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.analysis.learned import Learned
from flame.analysis.presence import Stretch, available, clipped, common, length, merged
from flame.analysis.sessions import sessions
from flame.analysis.utilisation import SHARES, overall, utilisation
from flame.config.availability import traces
from tests.analysis.conftest import records

STRETCHES = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)).map(lambda pair: (min(pair), max(pair))))
STEP = 50_000_000


def instants(stretches: list[Stretch]) -> set[int]:
    return {instant for begin, end in stretches for instant in range(begin, end)}


@given(STRETCHES, STRETCHES, st.integers(0, 40), st.integers(0, 40))
def test_stretches_are_sets_of_instants(one: list[Stretch], other: list[Stretch], begin: int, end: int) -> None:
    assert instants(merged(one)) == instants(one)
    assert all(left[1] < right[0] for left, right in zip(merged(one), merged(one)[1:], strict=False))
    assert length(one) == len(instants(one))
    assert common(one, other) == len(instants(one) & instants(other))
    assert instants(list(clipped(one, begin, end))) == instants(one) & set(range(begin, end))


def is_there(learned: Learned, node: str, at: int) -> bool:
    """Whether a trainer can train at an instant, asked of its trace and the population alone."""
    population = learned.run.condition.population
    joins, leaves = population.joins.get(node, 0) * 1e9, population.leaves.get(node, 1e18) * 1e9
    return joins <= at < leaves and traces(learned.run.condition)[node].available(at)


def test_shares_are_those_of_instants_looked_at(away: Learned) -> None:
    modelled = {each["id"]: each["delay_ns"] for each in records(away.run.path, "trainer_round")}
    work: dict[str, list[Stretch]] = {}
    for each in records(away.run.path, "dispatch"):
        if each["id"] in modelled:
            done = each["stamp_ns"] + each["delay_ns"] - each["up_ns"]
            work.setdefault(each["trainer"], []).append((done - modelled[each["id"]], done))
    looked = range(STEP // 2, away.end, STEP)
    table = utilisation(away)
    assert table["trainer"].to_list() == list(away.run.condition.nodes)
    for row in table.iter_rows(named=True):
        busy = [any(begin <= at < end for begin, end in work.get(row["trainer"], ())) for at in looked]
        there = [is_there(away, row["trainer"], at) for at in looked]
        gone = sum(not here and not works for here, works in zip(there, busy, strict=True))
        assert row["computing"] == pytest.approx(sum(busy) / len(looked), abs=0.02)
        assert row["away"] == pytest.approx(gone / len(looked), abs=0.02)
        assert sum(row[name] for name in SHARES) == pytest.approx(1)
    assert table["away"].max() > 0.2
    assert table["computing"].max() > 0.1


def test_nobody_is_away_where_everybody_is_always_there(plain: Learned) -> None:
    table = utilisation(plain)
    assert table["away"].to_list() == [0.0] * 6
    assert table["assigns"].sum() == len(records(plain.run.path, "dispatch"))
    assert overall(table)["computing"] == pytest.approx(table["computing"].sum() / 6)
    assert overall(table.clear()) == {}


def test_sessions_are_what_traces_leave_and_each_assign_is_in_one(away: Learned) -> None:
    table = sessions(away)
    for row in table.iter_rows(named=True):
        middle = round((row["begin_s"] + row["end_s"]) / 2 * 1e9)
        assert is_there(away, row["trainer"], middle)
        assert row["length_s"] == pytest.approx(row["end_s"] - row["begin_s"])
        assert not is_there(away, row["trainer"], round(row["end_s"] * 1e9)) or row["end_s"] == pytest.approx(away.end / 1e9)
    spent = {node: length(there) / 1e9 for node, there in available(away.run.condition, away.end).items()}
    totals = {node: table.filter(table["trainer"] == node)["length_s"].sum() for node in spent}
    assert totals == pytest.approx(spent)
    assigns = [each for each in records(away.run.path, "dispatch") if each["stamp_ns"] < away.end]
    met = [each["id"] for each in assigns if is_there(away, each["trainer"], each["stamp_ns"])]
    assert table["assigns"].sum() == len(met)
    assert table["uploads"].sum() == sum(each["accepted"] and each["id"] in met for each in records(away.run.path, "accepted"))
    assert 0 < table["uploads"].sum() <= len(met) < len(assigns)
    assert set(table["cut"].to_list()) == {True, False}


def test_one_session_a_trainer_where_nobody_ever_leaves(plain: Learned) -> None:
    table = sessions(plain)
    assert table.select("begin_s", "end_s", "cut").unique().rows() == [(0.0, plain.end / 1e9, True)]
    assert table.height == 6
