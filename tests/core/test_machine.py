"""Errors of machines say who, in which state, and what came; small values print themselves."""

from flame.core.events import Started
from flame.core.machine import IllegalEvent
from flame.core.profile import Profile
from flame.core.progress import Progress


class Kettle:
    """A machine of one state."""

    def step(self, now: int, event: object) -> list[object]:
        """Nothing can be taken."""
        raise IllegalEvent(self, event)  # type: ignore[arg-type]

    def describe(self) -> str:
        """Always the same."""
        return "kettle `k1` (cold)"


def test_an_illegal_event_names_machine_state_and_event() -> None:
    assert str(IllegalEvent(Kettle(), Started())) == "kettle `k1` (cold) got Started(kind='started')"  # type: ignore[arg-type]


def test_an_illegal_event_takes_a_sentence_as_well() -> None:
    assert str(IllegalEvent(Kettle(), "two lids")) == "kettle `k1` (cold) got two lids"  # type: ignore[arg-type]


def test_a_duration_is_the_delay_times_the_size() -> None:
    profile = Profile("t0", 1_500_000_001)
    assert profile.duration() == 1_500_000_001
    assert profile.duration(2) == 3_000_000_002
    assert profile.duration(0.5) == 750_000_000  # rounded, to even at a half
    assert isinstance(profile.duration(0.3), int)


def test_progress_prints_what_a_person_looks_for() -> None:
    assert str(Progress(1, 2, 3, 4, 5)) == "round 1, bin 2, iteration 3, version 4"
    assert Progress() == Progress(0, 0, 0, 0, 0)
