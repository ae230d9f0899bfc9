"""What the aggregator's process refuses before its machine sees it."""

from typing import Any

import pytest

from flame.config import Condition
from flame.core.messages import AGGREGATOR, Presence, Update
from flame.core.profile import Profile
from flame.learn.learner import build
from flame.roles.aggregator import Aggregator
from flame.runtime.aggregator_side import AggregatorSide
from flame.runtime.mqtt import Inbound
from flame.runtime.session import incarnation_of, life_of


class Noting:
    """A driver that only takes notes."""

    def __init__(self) -> None:
        self.notes: list[Any] = []

    def note(self, record: Any, *, node: str | None = None) -> None:
        """Remember it."""
        self.notes.append(record)


@pytest.mark.parametrize(("incarnation", "life"), [("w0.0", 0), ("w12.30", 30), ("1", 1), ("whoever", 0), ("w0.-1", 0)])
def test_the_life_of_an_incarnation(incarnation: str, life: int) -> None:
    assert life_of(incarnation) == life


def test_an_incarnation_says_which_life_it_is() -> None:
    assert life_of(incarnation_of("w3", 7)) == 7


@pytest.mark.parametrize("kind", ["message", "presence", "beat", "gone"])
def test_what_a_life_before_the_resume_left_on_the_broker_is_refused(kind: Any) -> None:
    condition = Condition.model_validate({"task": "toy", "stop": {"cycles": 3}})
    facts = build(condition).facts
    aggregator = Aggregator(condition, facts.init, facts.bins)
    mine = Presence(AGGREGATOR, "1", Profile(AGGREGATOR, 0), "init", "data", "code")
    side, driver = AggregatorSide(aggregator, mine, lambda report: None, lives=2), Noting()
    payload: Any = None
    late = Update(1, 0, 0, 0, 10, payload, 8, 1.0, None, None)
    side.received(driver, Inbound(kind, "t0", AGGREGATOR, incarnation_of("w0", 1), [late], ["t0"], {}, 0, 0))  # type: ignore[arg-type]
    assert [(note.what, note.node) for note in driver.notes] == [("refused", "t0")]
    assert "w0.1" in driver.notes[0].detail
