"""What a harm does to a compute, on the executor that it reaches into."""

from queue import SimpleQueue
from typing import Any

import numpy as np
import pytest

from bench import harm
from flame.config import Condition
from flame.core.tasks import Gradient, GradientResult
from flame.learn.learner import build
from flame.runtime.compute.executors import Beside, Computed

HARMED, PLAIN = 7, 8
"""Ids of assigns."""


@pytest.fixture
def reached_into(monkeypatch: pytest.MonkeyPatch) -> None:
    """Harms patch the class, in a process of their own; here it is given back."""
    monkeypatch.setattr(Beside, "submit", Beside.submit)


def computed(what: dict[str, Any]) -> dict[int, Computed]:
    """Both assigns, computed beside a main loop with that harm."""
    learner, ended = build(Condition.model_validate({"task": "toy", "stop": {"cycles": 1}})), SimpleQueue[Computed]()
    harm.HARMS[what["what"]]({"id": HARMED} | what)
    beside, theta = Beside(learner, ended.put), learner.facts.init
    for key in (HARMED, PLAIN):
        beside.submit(("t0", key), Gradient("t0", 0, 0, 1, theta), key)
    both = [ended.get(timeout=30) for _ in range(2)]
    beside.close()
    return {each.job[1]: each for each in both}


def bits(done: Computed) -> bytes:
    """Of its upload."""
    result = done.finished.result
    assert isinstance(result, GradientResult)
    return result.delta.data


@pytest.mark.usefixtures("reached_into")
def test_a_compute_that_sleeps_takes_longer_and_gives_the_same() -> None:
    both = computed({"what": "sleep", "seconds": 0.05})
    assert both[HARMED].finished.seconds >= 0.05
    assert bits(both[HARMED]) == bits(both[PLAIN])


@pytest.mark.usefixtures("reached_into")
def test_a_result_with_another_bit_differs_from_its_task_in_nothing_else() -> None:
    both = computed({"what": "round"})
    one, two = (np.frombuffer(bits(both[key]), np.uint8) for key in (HARMED, PLAIN))
    assert np.flatnonzero(one != two).tolist() == [0]
