"""What the aggregator's process refuses before its machine sees it."""

from typing import Any

import pytest

from flame.config import Condition
from flame.config.devices import profiles
from flame.core.messages import AGGREGATOR, Presence, Update
from flame.core.profile import Profile
from flame.core.progress import Progress
from flame.core.time import SECOND
from flame.learn.learner import build
from flame.roles.aggregator import Aggregator
from flame.runtime import aggregator_side
from flame.runtime.aggregator_side import AggregatorSide
from flame.runtime.control import Stalled
from flame.runtime.transport.mqtt import Inbound
from flame.runtime.transport.session import incarnation_of, life_of
from flame.telemetry.records import AggRound


class Noting:
    """A driver that only takes notes, and steps the aggregator if it has one."""

    def __init__(self, aggregator: Aggregator | None = None) -> None:
        self.notes: list[Any] = []
        self.aggregator, self.origin, self.waited, self.now = aggregator, None, 0, 0

    def deliver(self, node: str, event: Any) -> None:
        """Step it; nothing comes of the effects."""
        assert self.aggregator is not None
        self.aggregator.step(self.now, event)

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


DELAYS = [1.0, 2.0, 30.0]
"""Of the three trainers, s."""


class Clock:
    """The wall of an aggregator's side: what it has reported, as time goes on in heartbeats of a second."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **changes: Any) -> None:
        monkeypatch.setattr(aggregator_side, "monotonic_ns", lambda: 7 + self.driver.now)
        self.condition = Condition.model_validate(
            {"task": "toy", "trainers": 3, "goal": 3, "concurrency": 3, "loop": "sync", "delays": {"values": DELAYS}, "stop": {"cycles": 9}}
            | changes
        )
        facts, profile = build(self.condition).facts, profiles(self.condition)
        mine = Presence(AGGREGATOR, "1", Profile(AGGREGATOR, 0), "init", "data", "code")
        self.driver, self.reports = Noting(Aggregator(self.condition, facts.init, facts.bins)), list[Any]()
        self.side = AggregatorSide(self.driver.aggregator, mine, self.reports.append)
        present = [Presence(node, "w0.0", profile[node], "init", "data", "code") for node in self.condition.nodes]
        self.side.received(self.driver, Inbound("presence", "w0", AGGREGATOR, "w0.0", present, [], {}, 0, 0))  # type: ignore[arg-type]

    def stalls_until(self, second: int) -> list[tuple[float, str]]:
        """Those that are reported up to that second."""
        self.reports.clear()
        while self.driver.now < second * SECOND:
            self.driver.now += SECOND
            self.side.beat(self.driver)  # type: ignore[arg-type]
        return [(report.seconds, report.waits) for report in self.reports if isinstance(report, Stalled)]

    def close(self) -> None:
        """A cycle closes now."""
        record = AggRound(Progress(), 3, 3, [], self.driver.now, None, None, False, "keep", "constant", None, 0, 0, "", "", 3, 0)
        self.side.fill(self.driver, record)  # type: ignore[arg-type]


def test_a_stall_is_said_once_until_a_cycle_closes(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    due, grace = int(max(DELAYS)), int(clock.condition.limits.grace_s)
    assert clock.stalls_until(due + grace) == [], "the slowest trainer takes its time, which is no stall"
    [(waited, table)] = clock.stalls_until(500)
    assert waited == due + grace + 1
    assert table.startswith("  cycle 0 (round 0, bin 0, iteration 0, version 0) has 0 of 3 accepts\n  t0: assign 1 is open")
    clock.close()
    assert clock.stalls_until(500 + grace) == []
    assert len(clock.stalls_until(900)) == 1


def test_a_stall_names_some_of_many(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, trainers=40, goal=40, concurrency=40)
    [(_, table)] = clock.stalls_until(100)
    assert table.count("is open") == 5
    assert table.endswith("  ... and 35 more")
