"""Goals that can't be reached under traces or a blacklist are found before a run: against looking at every instant."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.config import Condition
from flame.core.trace import ALWAYS, NEVER, Trace
from flame.launch.preflight.goals import starving
from flame.launch.preflight.starving import at_once, ever_there, not_barred
from flame.policies.select import AsyncOort, Oort, Random

STATES = st.sampled_from(["AVL_TRAIN", "AVL_EVAL", "UN_AVL"])
TRACES = st.lists(st.builds(Trace.of, st.lists(st.tuples(st.integers(0, 11), STATES), max_size=6), st.just(12)), min_size=1, max_size=6)


@given(TRACES, st.integers(1, 7))
def test_counts_are_those_of_every_instant(made: list[Trace], wanted: int) -> None:
    held = {f"t{number}": trace for number, trace in enumerate(made)}
    assert ever_there(held, wanted) == min(wanted, sum(any(trace.available(t) for t in range(12)) for trace in made))
    assert at_once(held, wanted) == min(wanted, max(sum(trace.available(t) for trace in made) for t in range(12)))


def test_the_search_ends_where_enough_are_there() -> None:
    class Counted(dict[str, Trace]):
        looked = 0

        def items(self) -> Any:
            for item in super().items():
                self.looked += 1
                yield item

        values = property(lambda self: lambda: (trace for _, trace in self.items()))  # type: ignore[assignment]

    held = Counted({f"t{number}": ALWAYS for number in range(1000)})
    assert ever_there(held, 5) == 5
    assert held.looked <= 6


def test_nobody_is_ever_there() -> None:
    assert ever_there({"t0": NEVER, "t1": NEVER}, 2) == at_once({"t0": NEVER, "t1": NEVER}, 2) == 0


@pytest.mark.parametrize(
    ("select", "left"),
    [
        (Random(), 10),
        (Oort(), 10),
        (Oort(blacklist=3), 7),
        (AsyncOort(blacklist=0, blacklist_share=0.95), 1),
        (Oort(blacklist=3, blacklist_share=1), 0),
    ],
)
def test_who_is_left_of_ten_when_the_blacklist_is_full(select: Any, left: int) -> None:
    assert not_barred(select, 10) == left


def said(tmp_path: Any, **changes: Any) -> list[tuple[bool, str]]:
    """What the gate says of a condition whose recorded clients alternate: t0 before 500 s, t1 after, t2 never."""
    file = tmp_path / "traces.json"
    file.write_text(
        '{"1": {"2st": [[0, 2], [500, 0], [1000, 0]]}, "2": {"2st": [[0, 0], [500, 2], [1000, 2]]}, "3": {"2st": [[0, 0], [1000, 0]]}}'
    )
    recorded = {"trace": "file", "path": str(file), "skip_s": 0}
    plain = {"baseline": "b", "trainers": 3, "goal": 1, "concurrency": 3, "stop": {"cycles": 1}, "availability": recorded}
    return [(issue.blocking, f"{issue.what}; {issue.remedy}") for issue in starving(Condition.model_validate(plain | changes))]


def test_field_value_and_remedy(tmp_path: Any) -> None:
    assert said(tmp_path) == []
    ((blocks, text),) = said(tmp_path, goal=3)
    assert blocks
    assert "b: `goal` K = 3, and under `availability.trace: file` 2 trainers are ever there; lower `goal` to 2" in text
    ((blocks, text),) = said(tmp_path, goal=2)
    assert not blocks
    assert "`goal` K = 2, and under `availability.trace: file` at most 1 trainers are there at once" in text
    assert said(tmp_path, goal=2, loop="async") == []
    ((blocks, text),) = said(tmp_path, goal=2, loop="async", select={"type": "oort", "blacklist": 4, "blacklist_share": 0.7})
    assert not blocks
    assert "`select.blacklist_share` leaves 1 trainers to choose from when the blacklist is full; lower it to 0.333" in text


GROWING = {"type": "var_tracking", "goal_min": 1, "goal_max": 3}


def test_a_goal_that_may_grow_is_looked_at_too(tmp_path: Any) -> None:
    """Two trainers are ever there, never at once: K may grow to 3."""
    ((blocks, text),) = said(tmp_path, sizes=GROWING, loop="async")
    assert not blocks
    assert "`sizes.goal_max` K = 3, and under `availability.trace: file` 2 trainers are ever there; lower `sizes.goal_max` to 2" in text
    ((_, ever), (blocks, text)) = said(tmp_path, sizes=GROWING)
    assert "are ever there" in ever
    assert not blocks
    assert "`sizes.goal_max` K = 3, and under `availability.trace: file` at most 1 trainers are there at once" in text
    assert "lower `sizes.goal_max` to 1" in text
    ((blocks, text),) = said(tmp_path, goal=3, sizes=GROWING, loop="async")
    assert blocks
    assert "`goal` K = 3, and under `availability.trace: file` 2 trainers are ever there; lower `goal` to 2" in text


def test_a_blacklist_can_bar_what_a_goal_may_grow_to(tmp_path: Any) -> None:
    barred = {"type": "oort", "blacklist": 4, "blacklist_share": 0.4}
    (blocks, text), _ = said(tmp_path, sizes=GROWING, loop="async", select=barred)
    assert not blocks
    assert "`sizes.goal_max` K = 3, and `select.blacklist_share` leaves 2 trainers to choose from" in text
    assert "lower it to 0, or" in text
    assert [text for _, text in said(tmp_path, goal=2, loop="async", select=barred)] == []
