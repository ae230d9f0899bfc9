"""Where sequences part, against a reading by hand; and what a view leaves out."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from flame.roles import inbox
from parity.derived import released as rows
from parity.derived.released import Released, Row, View
from parity.explainer.parting import parting

EXACT = View(False, True, frozenset({"accepted"}))
LOGICAL = View(True, True, frozenset({"accepted"}))

keys = st.tuples(st.integers(0, 3), st.just(rows.UPDATE), st.sampled_from(["t0", "t1"]), st.integers(0, 2))
steps = st.lists(st.tuples(keys, st.sampled_from("ab"), st.lists(st.sampled_from("xyz"), max_size=2)), max_size=8)


def sequence(told: list[tuple[Any, str, list[str]]]) -> Released:
    """One row a step, with its effects."""
    found = Released()
    for number, (key, content, effects) in enumerate(told):
        found.rows.append(Row(key, content, 0, number, number))
        found.effects += [(number, effect) for effect in effects]
        found.marks[number + 1] = len(found.effects)
        found.last = number
    return found


@given(steps, steps)
def test_the_first_difference_is_found(one: Any, two: Any) -> None:
    """Row by row: another key, another content, or, once a row is the same, other effects of it."""
    found = parting(sequence(one), sequence(two), EXACT)
    naive = None
    for number in range(max(len(one), len(two))):
        if number >= len(one) or number >= len(two) or one[number][0] != two[number][0]:
            naive = (number, "row")
        elif one[number][1] != two[number][1]:
            naive = (number, "content")
        elif one[number][2] != two[number][2]:
            naive = (number, "effects")
        if naive is not None:
            break
    assert (None if found is None else (found.index, found.what)) == naive


@given(steps)
def test_a_sequence_does_not_part_from_itself_with_another_clock(one: Any) -> None:
    later = [((key[0] + 7, *key[1:]), content, effects) for key, content, effects in one]
    assert parting(sequence(one), sequence(later), LOGICAL) is None
    assert (parting(sequence(one), sequence(later), EXACT) is None) == (not one)


def test_effects_are_compared_where_both_have_ended_a_step() -> None:
    """One run released two rows in one step, the other one in two."""
    apart = sequence([((1, 5, "t0", 1), "a", ["x"]), ((2, 5, "t1", 2), "a", ["y"])])
    together = sequence([((1, 5, "t0", 1), "a", []), ((2, 5, "t1", 2), "a", [])])
    together.effects, together.marks = [(0, "x"), (0, "y")], {2: 2}
    assert parting(apart, together, EXACT) is None
    together.effects[1] = (0, "z")
    found = parting(apart, together, EXACT)
    assert found is not None
    assert (found.index, found.what, found.effect, found.step) == (1, "effects", 1, (1, 0))


def test_effects_before_the_first_row_differ_at_no_row() -> None:
    one, two = Released(effects=[(0, "x")], marks={0: 1}, last=0), Released(effects=[(0, "y")], marks={0: 1}, last=0)
    found = parting(one, two, EXACT)
    assert found is not None
    assert (found.index, found.what, found.step) == (None, "effects", (0, 0))


ASSIGN = {"kind": "send", "to": "t0", "msg": {"id": 3, "stamp": 5, "due": 9, "sent_now": 6, "payload": {"blob": "ab"}}}


def test_a_view_leaves_out_what_is_of_the_clock_and_nothing_else() -> None:
    assert EXACT.bare(ASSIGN)["msg"] == {"id": 3, "stamp": 5, "due": 9, "payload": {"blob": "ab"}}
    assert LOGICAL.bare(ASSIGN)["msg"] == {"id": 3, "payload": {"blob": "ab"}}
    record = {"at": {"cycle": 4}, "delay_ns": 7, "interval_ns": [1, 2], "id": 1}
    assert LOGICAL.bare(record) == {"at": {"cycle": 4}, "id": 1}
    assert EXACT.bare(record) == record
    assert LOGICAL.bare({"kind": "set_timer", "at": 9, "key": [9, 4, "t0", 1]}) == {"kind": "set_timer", "key": [4, "t0", 1]}


def test_the_ranks_are_the_inbox_ones() -> None:
    names = ("STOP", "FAULT", "JOIN", "EVAL", "TIMER", "UPDATE")
    assert [getattr(rows, name) for name in names] == [getattr(inbox, name) for name in names]
